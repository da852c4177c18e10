import { isUtf8 } from 'node:buffer'
import { FORM_FIELDS_MAX, type Json, type JsonObject, parseFormFields } from '../base/index.ts'
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
  const raw = parseFormFields(bytes)
  if (raw === undefined) return undefined
  const charset = charsetOf(contentType) ?? raw.get('_charset_') ?? undefined
  const parsed = [...raw]
  const isReplaced = parsed.some((pair) => pair.some((text) => text.includes('\uFFFD')))
  if ((charset === undefined || UTF_8.test(charset)) && isUtf8(bytes) && !isReplaced) return parsed
  return splitForm(bytes, charset ?? raw.get('charset') ?? undefined)
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

/** The algorithm of the URL standard (§5.1), with another charset. */
function splitForm(bytes: Uint8Array, charset: string | undefined): readonly (readonly [string, string])[] {
  const decode = (text: Uint8Array) => decodeText(percentDecode(text), charset)
  return splitAt(bytes, AMPERSAND)
    .filter((field) => field.byteLength > 0)
    .map((field) => {
      const at = field.indexOf(EQUALS)
      return at === -1 ? [decode(field), ''] : [decode(field.subarray(0, at)), decode(field.subarray(at + 1))]
    })
}

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

/** Byte by byte: a text with a replacement for each escape takes seconds for a form of some MiB. */
function percentDecode(bytes: Uint8Array): Uint8Array {
  const decoded = new Uint8Array(bytes.byteLength)
  let length = 0
  for (let at = 0; at < bytes.byteLength; at += 1) {
    const byte = bytes[at] ?? 0
    const escaped = byte === PERCENT ? hexDigit(bytes[at + 1]) * 16 + hexDigit(bytes[at + 2]) : Number.NaN
    if (Number.isNaN(escaped)) decoded[length] = byte === PLUS ? SPACE : byte
    else {
      decoded[length] = escaped
      at += 2
    }
    length += 1
  }
  return decoded.subarray(0, length)
}

/** The value of a hexadecimal digit, else NaN. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : Number.NaN
}
