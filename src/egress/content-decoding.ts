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
 * Decodes the content codings of a body, of an answer or a request, the last applied first. Data that is whole is read also where
 * the checksum behind it is cut off.
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
    .filter((layer) => !isIdentity(layer))
  if (layers.length > LAYERS_MAX) throw new DecodingError('unknown')
  let decoded = body
  for (const layer of layers.reverse()) decoded = await decodeLayer(layer, decoded, bytesMax)
  return decoded
}

/** Names that are no coding: of a body that is as it is, and of how an upload was split (AWS), which storage hands on. */
const IDENTITY_NAMES: ReadonlySet<string> = new Set(['', 'identity', 'none', 'binary', '7bit', '8bit', 'aws-chunked'])

/** Charsets, which some servers name where the coding belongs. */
const CHARSET_NAME =
  /^(?:utf-?(?:8|16(?:le|be)?|32)|us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|windows-\d{3,4}|gb(?:k|2312|18030)|big5|shift[_-]jis|euc-(?:jp|kr))$/

function isIdentity(name: string): boolean {
  return IDENTITY_NAMES.has(name) || CHARSET_NAME.test(name)
}

async function decodeLayer(layer: string, body: Buffer, bytesMax: number): Promise<Buffer> {
  const codec = contentCodec(layer, body)
  if (!codec) throw new DecodingError('unknown')
  try {
    return codec.inline(body, { maxOutputLength: Math.min(bytesMax, INLINE_BYTES_MAX) })
  } catch (error) {
    if (endsEarly(error)) return await withoutTrailer(codec, body, bytesMax, error)
    if (!isTooLarge(error)) throw new DecodingError('corrupt', error)
    if (bytesMax <= INLINE_BYTES_MAX) throw new DecodingError('too_large', error)
  }
  return new Promise((resolve, reject) => {
    codec.threaded(body, { maxOutputLength: bytesMax }, (error, decoded) => {
      if (error === null) resolve(decoded)
      else if (endsEarly(error)) resolve(withoutTrailer(codec, body, bytesMax, error))
      else reject(new DecodingError(isTooLarge(error) ? 'too_large' : 'corrupt', error))
    })
  })
}

function endsEarly(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR'
}

/**
 * Reads compressed data that is whole, but ends within the checksum behind it, as some servers send it and browsers accept it.
 *
 * @throws DecodingError when the data itself is cut off
 */
async function withoutTrailer(codec: ContentCodec, body: Buffer, bytesMax: number, cause: unknown): Promise<Buffer> {
  const members: Buffer[] = []
  let decodedBytes = 0
  let rest = body
  do {
    const start = codec.dataOffset?.(rest)
    if (start === undefined) throw new DecodingError('corrupt', cause)
    const { buffer, engine } = await inflateData(rest.subarray(start), bytesMax)
    decodedBytes += buffer.length
    if (decodedBytes > bytesMax || members.length >= MEMBERS_MAX) throw new DecodingError('too_large', cause)
    members.push(buffer)
    rest = rest.subarray(start + engine.bytesWritten + GZIP_TRAILER_BYTES)
  } while (rest.length > 0)
  return Buffer.concat(members, decodedBytes)
}

/** Members of one gzip body (RFC 1952 §2.2). */
const MEMBERS_MAX = 100
const GZIP_TRAILER_BYTES = 8

function inflateData(data: Buffer, bytesMax: number): Promise<InflatedData> {
  return new Promise((resolve, reject) => {
    inflateRaw(data, { maxOutputLength: bytesMax, info: true } as OutputCap, (error, result) => {
      if (error) reject(new DecodingError(isTooLarge(error) ? 'too_large' : 'corrupt', error))
      else resolve(result as unknown as InflatedData)
    })
  })
}

/** What zlib returns with `info`. */
interface InflatedData {
  readonly buffer: Buffer
  /** `bytesWritten`: the compressed bytes that were read. */
  readonly engine: { readonly bytesWritten: number }
}

const GZIP_HEADER_BYTES = 10
const ZLIB_HEADER_BYTES = 2

/** Where the data of a gzip member begins (RFC 1952 §2.3). */
function gzipDataOffset(body: Buffer): number | undefined {
  const flags = body[3]
  if (body.length < GZIP_HEADER_BYTES || body[0] !== 0x1f || body[1] !== 0x8b || flags === undefined) return undefined
  let at = GZIP_HEADER_BYTES
  if ((flags & 0x04) !== 0) at += 2 + (at + 2 <= body.length ? body.readUInt16LE(at) : body.length)
  for (const text of [0x08, 0x10]) {
    if ((flags & text) === 0) continue
    const end = body.indexOf(0, at)
    if (end === -1) return undefined
    at = end + 1
  }
  if ((flags & 0x02) !== 0) at += 2
  return at < body.length ? at : undefined
}

interface OutputCap {
  readonly maxOutputLength: number
}

interface ContentCodec {
  readonly inline: (body: InputType, cap: OutputCap) => Buffer
  readonly threaded: (body: InputType, cap: OutputCap, done: (error: Error | null, decoded: Buffer) => void) => void
  /** Where the data begins, of a coding with a checksum behind it. */
  readonly dataOffset?: (body: Buffer) => number | undefined
}

const GZIP: ContentCodec = { inline: gunzipSync, threaded: gunzip, dataOffset: gzipDataOffset }
const DEFLATE: ContentCodec = { inline: inflateSync, threaded: inflate, dataOffset: () => ZLIB_HEADER_BYTES }
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
