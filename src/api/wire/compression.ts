import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { Failure } from '../../base/index.ts'

const DECOMPRESSORS: Readonly<
  Record<string, (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>>
> = { gzip: promisify(gunzip), br: promisify(brotliDecompress), deflate: promisify(inflate) }

/** The encodings a request may use, as the protocols list them. Answers are never compressed. */
export const ACCEPTED_ENCODINGS = [...Object.keys(DECOMPRESSORS), 'identity'].join(',')

/**
 * Undoes the compression of a message, never producing more than `bytesMax`.
 *
 * @param encoding absent or `identity`: the bytes as they are
 * @throws Failure COMPRESSION_UNSUPPORTED, MALFORMED_BODY, REQUEST_TOO_LARGE
 */
export function decompress(bytes: Buffer, encoding: string | undefined, bytesMax: number): Buffer | Promise<Buffer> {
  if (encoding === undefined || encoding === 'identity') return bytes
  const run = Object.hasOwn(DECOMPRESSORS, encoding) ? DECOMPRESSORS[encoding] : undefined
  if (run === undefined)
    throw new Failure('COMPRESSION_UNSUPPORTED', `the compression is not one of ${ACCEPTED_ENCODINGS}`)
  return run(bytes, { maxOutputLength: bytesMax }).catch((cause) => {
    if (cause instanceof RangeError)
      throw new Failure('REQUEST_TOO_LARGE', `the request is larger than ${bytesMax} bytes`, { cause })
    throw new Failure('MALFORMED_BODY', `the body is not valid ${encoding}`, { cause })
  })
}
