import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  type InputType,
  inflate,
  inflateRaw,
  inflateRawSync,
  inflateSync,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib'
import { toUpstreamFailure } from './connection-errors.ts'
import type { HttpHeaders } from './headers.ts'

/** A body without its content encoding, and the headers that are true of it. */
export interface DecodedContent {
  readonly headers: HttpHeaders
  readonly body: Uint8Array
}

/**
 * Undoes the `content-encoding` of a whole body, for whoever has streamed it and wants to read it after all.
 *
 * @param host named in the failure
 * @param bytesMax of the decoded body
 * @throws Failure UPSTREAM_INVALID_RESPONSE
 */
export async function decodeContent(
  host: string,
  headers: HttpHeaders,
  body: Buffer,
  bytesMax: number,
): Promise<DecodedContent> {
  const { 'content-encoding': encoding, 'content-length': _encoded, ...others } = headers
  if (encoding === undefined) return { headers, body }
  try {
    return { headers: others, body: await decodeBody(encoding, body, bytesMax) }
  } catch (error) {
    throw toUpstreamFailure(host, error)
  }
}

/** The content encodings that are asked for and understood. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br, zstd'

/** More layers than this are an attack or a fault, never a service. */
const LAYERS_MAX = 2

/** Up to this many decoded bytes are produced on the spot; a thread's round trip would cost more than the work. */
const INLINE_BYTES_MAX = 256 * 1024

/** The body was not what its `content-encoding` says, or became larger than allowed. */
export class DecodingError extends Error {
  readonly kind: 'unknown' | 'corrupt' | 'too_large'

  constructor(kind: DecodingError['kind'], cause?: unknown) {
    super(`content decoding: ${kind}`, { cause })
    this.name = 'DecodingError'
    this.kind = kind
  }
}

/**
 * Undoes `content-encoding`, the last applied first.
 *
 * @param encoding the header's value; absent, empty and names that mean "as is" return the body itself
 * @param bytesMax cap of the decoded size; inflation stops there, so a bomb costs no more than the cap
 * @throws DecodingError
 */
export async function decodeBody(encoding: string | undefined, body: Buffer, bytesMax: number): Promise<Buffer> {
  if (encoding === undefined || body.length === 0) return body
  const layers = encoding
    .toLowerCase()
    .split(',')
    .map((layer) => layer.trim())
    .filter((layer) => !IDENTITY_NAMES.has(layer))
  if (layers.length > LAYERS_MAX) throw new DecodingError('unknown')
  let decoded = body
  for (const layer of layers.reverse()) decoded = await decodeLayer(layer, decoded, bytesMax)
  return decoded
}

/** Seen in the wild for bodies that are not encoded at all. */
const IDENTITY_NAMES: ReadonlySet<string> = new Set(['', 'identity', 'none', 'utf-8', 'utf8', 'binary'])

async function decodeLayer(layer: string, body: Buffer, bytesMax: number): Promise<Buffer> {
  const codec = contentCodec(layer, body)
  if (!codec) throw new DecodingError('unknown')
  try {
    return codec.inline(body, { maxOutputLength: Math.min(bytesMax, INLINE_BYTES_MAX) })
  } catch (error) {
    if (!isTooLarge(error)) throw new DecodingError('corrupt', error)
    if (bytesMax <= INLINE_BYTES_MAX) throw new DecodingError('too_large', error)
  }
  return new Promise((resolve, reject) => {
    codec.threaded(body, { maxOutputLength: bytesMax }, (error, decoded) => {
      if (error) reject(new DecodingError(isTooLarge(error) ? 'too_large' : 'corrupt', error))
      else resolve(decoded)
    })
  })
}

interface OutputCap {
  readonly maxOutputLength: number
}

interface ContentCodec {
  readonly inline: (body: InputType, cap: OutputCap) => Buffer
  readonly threaded: (body: InputType, cap: OutputCap, done: (error: Error | null, decoded: Buffer) => void) => void
}

const GZIP: ContentCodec = { inline: gunzipSync, threaded: gunzip }
const DEFLATE: ContentCodec = { inline: inflateSync, threaded: inflate }
const DEFLATE_RAW: ContentCodec = { inline: inflateRawSync, threaded: inflateRaw }
const BROTLI: ContentCodec = { inline: brotliDecompressSync, threaded: brotliDecompress }
const ZSTD: ContentCodec = { inline: zstdDecompressSync, threaded: zstdDecompress }

function contentCodec(layer: string, body: Buffer): ContentCodec | undefined {
  switch (layer) {
    case 'gzip':
    case 'x-gzip':
      return GZIP
    case 'deflate':
      // The standard means zlib's format; some servers send the raw stream. A zlib header has 8 in its low nibble.
      return ((body[0] ?? 0) & 0x0f) === 8 ? DEFLATE : DEFLATE_RAW
    case 'br':
      return BROTLI
    case 'zstd':
      return ZSTD
    default:
      return undefined
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}
