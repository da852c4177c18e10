import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'

/** A body cannot be decoded as text. The message begins with a verb and holds nothing of the body. */
export class CharsetError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CharsetError'
  }
}

const CHARSET_PARAMETER = /;\s*charset\s*=\s*["']?([^\s"',;]+)/i

/** The charset that a content type names (RFC 9110 §8.3.1). */
export function charsetOf(contentType: string): string | undefined {
  return CHARSET_PARAMETER.exec(contentType)?.[1]
}

const UTF_8 = 'utf-8'
const decoders = new Map<string, TextDecoder>([[UTF_8, new TextDecoder(UTF_8, { fatal: true })]])

/**
 * Decodes a body as text. A byte order mark overrides the charset, as in browsers, and is not part of the text.
 *
 * @param charset a label of the WHATWG Encoding Standard; absent, or unknown of what is valid UTF-8: UTF-8
 * @throws CharsetError for other bytes in an unknown charset, and for invalid bytes: a replacement character would be a wrong value
 */
export function decodeText(body: Uint8Array, charset: string | undefined): string {
  const decoder = decoderFor(body, byteOrderMark(body) ?? charset ?? UTF_8)
  try {
    return decoder.decode(body)
  } catch (cause) {
    throw new CharsetError(`holds bytes that are not ${decoder.encoding.toUpperCase()}`, cause)
  }
}

/**
 * Decodes JSON as text. What is valid UTF-8 is UTF-8, whatever its label says (RFC 8259 §8.1); anything else is in its charset.
 *
 * @throws CharsetError as `decodeText`
 */
export function decodeJsonText(body: Uint8Array, charset: string | undefined): string {
  if (hasZero(body)) return decodeText(body, utf16Of(body) ?? charset)
  return decodeText(body, charset === undefined || !isUtf8(body) ? charset : UTF_8)
}

/** In UTF-16 and UTF-32 one of the first bytes of most texts is zero, which UTF-8 allows and JSON does not. */
function hasZero(body: Uint8Array): boolean {
  return body.subarray(0, 4).includes(0)
}

/** The byte order of JSON in UTF-16, whose first character is ASCII (RFC 4627 §3). */
function utf16Of([first, second, third, fourth]: Uint8Array): string | undefined {
  if (first === 0 && second !== 0) return 'utf-16be'
  return first !== 0 && second === 0 && (third !== 0 || fourth !== 0) ? 'utf-16le' : undefined
}

/** Decodes a body of any type: what begins like JSON is read as that. @throws CharsetError as `decodeText` */
export function decodeAnyText(body: Uint8Array, charset: string | undefined): string {
  const start = Buffer.from(body.subarray(0, START_BYTES)).toString('latin1')
  return JSON_START.test(start) ? decodeJsonText(body, charset) : decodeText(body, charset)
}

/** Decodes a body for messages: in its charset, else as UTF-8 with replacement characters. */
export function decodeLoosely(body: Uint8Array, charset: string | undefined): string {
  try {
    return decodeAnyText(body, charset)
  } catch {
    return lossyDecoder.decode(body)
  }
}

const lossyDecoder = new TextDecoder()

const JSON_START = /^(?:\xef\xbb\xbf)?[\s\0]*[[{]/
const START_BYTES = 256

/** The charset of a byte order mark. */
function byteOrderMark(body: Uint8Array): string | undefined {
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le'
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be'
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? UTF_8 : undefined
}

function decoderFor(body: Uint8Array, label: string): TextDecoder {
  try {
    return decoderOf(label)
  } catch (error) {
    if (hasZero(body) || !isUtf8(body)) throw error
    return decoderOf(UTF_8)
  }
}

/** One decoder per encoding: labels come from third parties, and many labels share an encoding. */
function decoderOf(name: string): TextDecoder {
  const label = name.toLowerCase()
  const known = decoders.get(label)
  if (known !== undefined) return known
  const decoder = createDecoder(label)
  const { encoding } = decoder
  const shared = decoders.get(encoding) ?? decoder
  decoders.set(encoding, shared)
  return shared
}

function createDecoder(label: string): TextDecoder {
  try {
    return new TextDecoder(label, { fatal: true })
  } catch (cause) {
    throw new CharsetError(`is in the charset ${JSON.stringify(label.slice(0, 40))}, which is not known`, cause)
  }
}
