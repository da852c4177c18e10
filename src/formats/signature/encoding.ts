import { hash, timingSafeEqual } from 'node:crypto'

/** How bytes are written as text. */
export const BYTE_ENCODINGS = ['hex', 'base64', 'base64url'] as const

export type ByteEncoding = (typeof BYTE_ENCODINGS)[number]

/**
 * Compares without telling by its duration where the texts or bytes differ, or by how much their lengths do.
 *
 * Both sides are hashed first, so that the comparison itself always runs over 32 bytes.
 */
export function constantTimeEqual(left: string | Uint8Array, right: string | Uint8Array): boolean {
  return timingSafeEqual(hash('sha256', left, 'buffer'), hash('sha256', right, 'buffer'))
}

/** The one spelling of an encoded text: hexadecimal in lower case, base64url without padding, base64 with it. */
export function normaliseEncoded(text: string, encoding: ByteEncoding): string {
  switch (encoding) {
    case 'hex':
      return text.toLowerCase()
    case 'base64url':
      return text.replace(/={1,2}$/, '')
    case 'base64':
      return text
  }
}

/** The bytes of a text, `undefined` when it is not exactly that encoding of any bytes; Node alone would skip what it cannot read. */
export function decodeExactly(text: string, encoding: ByteEncoding): Buffer | undefined {
  const bytes = Buffer.from(text, encoding)
  return normaliseEncoded(bytes.toString(encoding), encoding) === normaliseEncoded(text, encoding) ? bytes : undefined
}
