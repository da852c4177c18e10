import { TextDecoder } from 'node:util'

/** A body cannot be decoded as text. The message begins with a verb and holds nothing of the body. */
export class CharsetError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CharsetError'
  }
}

const CHARSET_PARAMETER = /;\s*charset\s*=\s*"?([^\s";]+)/i

/** The charset that a content type names (RFC 9110 §8.3.1). */
export function charsetOf(contentType: string): string | undefined {
  return CHARSET_PARAMETER.exec(contentType)?.[1]
}

const UTF_8 = 'utf-8'
const decoders = new Map<string, TextDecoder>([[UTF_8, new TextDecoder(UTF_8, { fatal: true })]])

/**
 * Decodes a body as text. A byte order mark overrides the charset, as in browsers, and is not part of the text.
 *
 * @param charset a label of the WHATWG Encoding Standard; absent: UTF-8
 * @throws CharsetError for an unknown charset, and for invalid bytes: a replacement character would be a wrong value
 */
export function decodeText(body: Uint8Array, charset: string | undefined): string {
  const label = byteOrderMark(body) ?? charset ?? UTF_8
  const decoder = decoderOf(label)
  try {
    return decoder.decode(body)
  } catch (cause) {
    throw new CharsetError(`holds bytes that are not ${decoder.encoding.toUpperCase()}`, cause)
  }
}

/** The charset of a byte order mark. */
function byteOrderMark(body: Uint8Array): string | undefined {
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le'
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be'
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? UTF_8 : undefined
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
