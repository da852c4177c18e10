import { isUtf8 } from 'node:buffer'
import { FORM_FIELDS_MAX, isFormTooLarge } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { charsetOf, decodeText } from './response/charset.ts'

const UTF_8 = /^utf-?8$/i
const FORM_TYPE = /^application\/x-www-form-urlencoded\b/i

/** Whether a content type is a URL-encoded form. */
export function isFormType(contentType: string): boolean {
  return FORM_TYPE.test(contentType)
}

/**
 * The fields of a URL-encoded form in their order, decoded by the charset of the content type, else by the one that the form names
 * in `_charset_` (HTML), or in `charset` where it is no UTF-8 (PayPal), else as UTF-8.
 *
 * @returns undefined for a form with more fields or bytes than are read
 * @throws CharsetError for an unknown charset, and for bytes that are not in it: a replacement character would be a wrong value
 */
export function readForm(bytes: Uint8Array, contentType = ''): readonly (readonly [string, string])[] | undefined {
  if (isFormTooLarge(bytes)) return undefined
  const fields = splitForm(bytes)
  const textOf = (name: string) => {
    const [, value] = fields.find(([each]) => Buffer.from(each).equals(Buffer.from(name))) ?? []
    return value === undefined ? undefined : Buffer.from(value).toString('latin1')
  }
  const charset = charsetOf(contentType) ?? textOf('_charset_')
  const isPlain = (charset === undefined || UTF_8.test(charset)) && fields.every((field) => field.every(isUtf8))
  const decode = isPlain ? utf8Of : (text: Uint8Array) => decodeField(text, charset ?? textOf('charset'))
  return fields.map(([name, value]) => [decode(name), decode(value)])
}

/** A byte order mark is a character of a field: left out, another body would have the same fields. */
function utf8Of(text: Uint8Array): string {
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString()
}

/** As `utf8Of`, behind a character where no byte order mark is looked for. */
function decodeField(text: Uint8Array, charset: string | undefined): string {
  return decodeText(Buffer.concat([Buffer.of(SPACE), text]), charset).slice(1)
}

/** Fields as one object; those with one name are a list. */
export function formFields(fields: Iterable<readonly [name: string, value: Json]>): JsonObject {
  const byName = Map.groupBy(fields, ([name]) => name)
  return Object.fromEntries(
    [...byName].map(([name, some]) => [
      name,
      some.length === 1 ? (some[0]?.[1] ?? '') : some.map(([, value]) => value),
    ]),
  )
}

/** The text of a form whose fields cannot be read. */
export const FORM_TOO_LARGE = `has more than ${FORM_FIELDS_MAX} form fields, or is too long`

/** The bytes of each name and value, by the algorithm of the URL standard (§5.1). */
function splitForm(bytes: Uint8Array): readonly (readonly [name: Uint8Array, value: Uint8Array])[] {
  return splitAt(bytes, AMPERSAND)
    .filter((field) => field.byteLength > 0)
    .map((field) => {
      const at = field.indexOf(EQUALS)
      const [name, value] = at === -1 ? [field, NOTHING] : [field.subarray(0, at), field.subarray(at + 1)]
      return [percentDecode(name), percentDecode(value)]
    })
}

const NOTHING = new Uint8Array()
const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

function splitAt(bytes: Uint8Array, separator: number): Uint8Array[] {
  const parts: Uint8Array[] = []
  let start = 0
  for (let at = bytes.indexOf(separator); at !== -1; at = bytes.indexOf(separator, start)) {
    parts.push(bytes.subarray(start, at))
    start = at + 1
  }
  return [...parts, bytes.subarray(start)]
}

/**
 * Byte by byte: a text with a replacement for each escape takes seconds for a form of some MiB, and `URLSearchParams` a second for one
 * of pluses.
 */
function percentDecode(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(PERCENT) && !bytes.includes(PLUS)) return bytes
  const decoded = new Uint8Array(bytes.byteLength)
  let length = 0
  for (let at = 0; at < bytes.byteLength; at += 1) {
    const byte = bytes[at] as number
    const escaped = byte === PERCENT ? escapedByte(bytes, at) : -1
    if (escaped !== -1) at += 2
    decoded[length] = escaped !== -1 ? escaped : byte === PLUS ? SPACE : byte
    length += 1
  }
  return decoded.subarray(0, length)
}

/** The byte of the escape at a percent sign; -1 for none. */
function escapedByte(bytes: Uint8Array, at: number): number {
  const high = HEX_DIGITS[bytes[at + 1] ?? 0] as number
  const low = HEX_DIGITS[bytes[at + 2] ?? 0] as number
  return high === -1 || low === -1 ? -1 : high * 16 + low
}

/** By byte, the value of a hexadecimal digit, else -1. */
const HEX_DIGITS = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)
