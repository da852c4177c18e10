import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { Failure } from './errors.ts'

type Decompressor = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>

const DECOMPRESSORS: ReadonlyMap<string, Decompressor> = new Map<string, Decompressor>([
  ['gzip', promisify(gunzip)],
  ['br', promisify(brotliDecompress)],
  ['deflate', promisify(inflate)],
])

/** The encodings a request may use, as the protocols list them. Answers are never compressed. */
export const ACCEPTED_ENCODINGS = [...DECOMPRESSORS.keys(), 'identity'].join(',')

/** A content coding that this server can decode. */
export type Coding = string & { readonly brand: 'Coding' }

/**
 * Reads the name of a content coding: case-insensitive, `x-gzip` is `gzip` (RFC 9110, 8.4.1).
 *
 * @returns undefined for none and for `identity`
 * @throws Failure COMPRESSION_UNSUPPORTED
 */
export function codingOf(header: string | undefined): Coding | undefined {
  if (header === undefined) return undefined
  const name = header.trim().toLowerCase()
  if (name === '' || name === 'identity') return undefined
  const coding = name === 'x-gzip' ? 'gzip' : name
  if (DECOMPRESSORS.has(coding)) return coding as Coding
  throw new Failure('COMPRESSION_UNSUPPORTED', `the compression is not one of ${ACCEPTED_ENCODINGS}`)
}

/**
 * Decompresses a message to at most `bytesMax` bytes.
 *
 * @param coding absent: the bytes as they are
 * @throws Failure MALFORMED_BODY, REQUEST_TOO_LARGE
 */
export function decompress(bytes: Buffer, coding: Coding | undefined, bytesMax: number): Buffer | Promise<Buffer> {
  const run = coding === undefined ? undefined : DECOMPRESSORS.get(coding)
  if (run === undefined) return bytes
  return run(bytes, { maxOutputLength: bytesMax }).catch((cause) => {
    if (cause instanceof RangeError)
      throw new Failure('REQUEST_TOO_LARGE', `the request is larger than ${bytesMax} bytes`, { cause })
    throw new Failure('MALFORMED_BODY', `the body is not valid ${coding}`, { cause })
  })
}
