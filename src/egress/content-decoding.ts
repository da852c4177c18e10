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
import { DecodingError, toUpstreamFailure } from './connection-errors.ts'
import type { HttpHeaders } from './headers.ts'

/** A decoded body with its headers. */
export interface DecodedContent {
  readonly headers: HttpHeaders
  readonly body: Uint8Array
}

/**
 * Decodes the `content-encoding` of a whole body that was streamed.
 *
 * @param host named in the failure
 * @param bytesMax size limit of the decoded body
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

/** The value of `accept-encoding`. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br, zstd'

/** Content codings of one body; more are an attack or a fault. */
const LAYERS_MAX = 2

/** Up to this size decoding is synchronous: a round trip to the thread pool costs more. */
const INLINE_BYTES_MAX = 256 * 1024

/**
 * Decodes the content codings of a body, the last applied first.
 *
 * @param encoding the header's value; absent, empty and names for no encoding return the body itself
 * @param bytesMax size limit of the decoded body; inflation stops there, which bounds decompression bombs
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

/** Names that servers send for bodies without encoding. */
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
