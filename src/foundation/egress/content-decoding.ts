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
import { Failure } from '../base/errors.ts'
import type { HttpHeaders } from './headers.ts'
import type { EgressRequest } from './request.ts'
import { LARGE_RESPONSE_BYTES, responseTooLarge } from './response.ts'

/** A decoded body with its headers. */
export interface DecodedContent {
  readonly headers: HttpHeaders
  readonly body: Uint8Array
}

/** A body is not in its content coding, the coding is not known, or the body is larger decoded than allowed. */
export class DecodingError extends Error {
  readonly kind: 'unknown' | 'corrupt' | 'too_large'
  /** What the header names. */
  readonly coding: string

  constructor(kind: DecodingError['kind'], coding: string, cause?: unknown) {
    super(`content decoding: ${kind}`, { cause })
    this.name = 'DecodingError'
    this.kind = kind
    this.coding = JSON.stringify(coding.slice(0, CODING_LENGTH_MAX))
  }
}

/** Longest part of a coding's name that an error quotes. */
const CODING_LENGTH_MAX = 40

/**
 * Decodes the `content-encoding` of the whole body of a response.
 *
 * @param host named in the failure
 * @param limits of the decoded body
 * @throws Failure UPSTREAM_INVALID_RESPONSE, permanent when the coding is not known or the body is too large; what `reserveBytes`
 * returns
 */
export async function decodeContent(
  host: string,
  headers: HttpHeaders,
  body: Buffer,
  limits: Pick<EgressRequest, 'maxResponseBytes' | 'reserveBytes'>,
): Promise<DecodedContent> {
  const { 'content-encoding': encoding, 'content-length': _encoded, ...others } = headers
  if (encoding === undefined) return { headers, body }
  try {
    return { headers: others, body: await decodeReserved(encoding, body, limits) }
  } catch (error) {
    throw error instanceof DecodingError ? decodingFailure(host, error, limits.maxResponseBytes) : error
  }
}

/** A body that unfolds to a large one is decoded a second time, with memory reserved for it. */
async function decodeReserved(
  encoding: string,
  body: Buffer,
  { maxResponseBytes: bytesMax, reserveBytes }: Pick<EgressRequest, 'maxResponseBytes' | 'reserveBytes'>,
): Promise<Buffer> {
  if (reserveBytes === undefined || bytesMax <= LARGE_RESPONSE_BYTES) return await decodeBody(encoding, body, bytesMax)
  try {
    return await decodeBody(encoding, body, LARGE_RESPONSE_BYTES)
  } catch (error) {
    if (!(error instanceof DecodingError) || error.kind !== 'too_large') throw error
  }
  const failure = reserveBytes(bytesMax)
  if (failure !== undefined) throw failure
  return await decodeBody(encoding, body, bytesMax)
}

function decodingFailure(host: string, error: DecodingError, bytesMax: number): Failure {
  const failed = `the call to "${host}" failed: its answer`
  const details = { metadata: { host }, cause: error }
  switch (error.kind) {
    case 'unknown':
      return new Failure(
        'UPSTREAM_INVALID_RESPONSE',
        `${failed} uses the content encoding ${error.coding}, which is not supported`,
        {
          ...details,
          isPermanent: true,
        },
      )
    case 'corrupt':
      return new Failure('UPSTREAM_INVALID_RESPONSE', `${failed} is not encoded as it says (${error.coding})`, details)
    case 'too_large':
      return responseTooLarge(host, bytesMax, error)
  }
}

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
  const layers = codingsOf(encoding)
  if (layers.length > LAYERS_MAX) throw new DecodingError('unknown', encoding)
  let decoded = body
  for (const layer of layers.reverse()) decoded = await decodeLayer(layer, decoded, bytesMax)
  return decoded
}

/** Whether a header names no coding: the body is as it is. @param encoding of the header */
export function isIdentityCoding(encoding: string | undefined): boolean {
  return encoding === undefined || codingsOf(encoding).length === 0
}

function codingsOf(encoding: string): string[] {
  const names = encoding.toLowerCase().split(',')
  return names.map((name) => name.trim()).filter((name) => !isIdentityName(name))
}

/** Names that are no coding: of a body that is as it is, and of how an upload was split (AWS), which storage hands on. */
const IDENTITY_NAMES: ReadonlySet<string> = new Set(['', 'identity', 'none', 'binary', '7bit', '8bit', 'aws-chunked'])

/** Charsets, which some servers name where the coding belongs. */
const CHARSET_NAME =
  /^(?:utf-?(?:8|16(?:le|be)?|32)|us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|windows-\d{3,4}|gb(?:k|2312|18030)|big5|shift[_-]jis|euc-(?:jp|kr))$/

function isIdentityName(name: string): boolean {
  return IDENTITY_NAMES.has(name) || CHARSET_NAME.test(name)
}

async function decodeLayer(layer: string, body: Buffer, bytesMax: number): Promise<Buffer> {
  const codec = contentCodec(layer, body)
  if (!codec) throw new DecodingError('unknown', layer)
  try {
    return codec.inline(body, { maxOutputLength: Math.min(bytesMax, INLINE_BYTES_MAX) })
  } catch (error) {
    if (endsEarly(error) || hasRest(codec, body, error))
      return await withoutTrailer(layer, codec, body, bytesMax, error)
    if (!isTooLarge(error)) throw new DecodingError('corrupt', layer, error)
    if (bytesMax <= INLINE_BYTES_MAX) throw new DecodingError('too_large', layer, error)
  }
  return new Promise((resolve, reject) => {
    codec.threaded(body, { maxOutputLength: bytesMax }, (error, decoded) => {
      if (error === null) resolve(decoded)
      else if (endsEarly(error) || hasRest(codec, body, error))
        resolve(withoutTrailer(layer, codec, body, bytesMax, error))
      else reject(new DecodingError(isTooLarge(error) ? 'too_large' : 'corrupt', layer, error))
    })
  })
}

function endsEarly(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR'
}

/** Whether other bytes follow whole gzip members: zlib has checked the first of them, and finds no header behind the last. */
function hasRest(codec: ContentCodec, body: Buffer, error: unknown): boolean {
  const isHeader = error instanceof Error && error.message === 'incorrect header check'
  return isHeader && codec === GZIP && gzipDataOffset(body) !== undefined
}

/**
 * Reads compressed data that is whole, but ends within the checksum behind it, or is followed by a line end or the like, as some
 * servers send it and browsers accept it.
 *
 * @throws DecodingError when the data itself is cut off
 */
async function withoutTrailer(
  layer: string,
  codec: ContentCodec,
  body: Buffer,
  bytesMax: number,
  cause: unknown,
): Promise<Buffer> {
  const members: Buffer[] = []
  let decodedBytes = 0
  let rest = body
  do {
    const start = codec.dataOffset?.(rest)
    if (start === undefined && members.length > 0 && !endsEarly(cause)) break
    if (start === undefined) throw new DecodingError('corrupt', layer, cause)
    const { buffer, engine } = await inflateData(layer, rest.subarray(start), bytesMax)
    decodedBytes += buffer.length
    if (decodedBytes > bytesMax || members.length >= MEMBERS_MAX) throw new DecodingError('too_large', layer, cause)
    members.push(buffer)
    rest = rest.subarray(start + engine.bytesWritten + GZIP_TRAILER_BYTES)
  } while (rest.length > 0)
  return Buffer.concat(members, decodedBytes)
}

/** Members of one gzip body (RFC 1952 §2.2). */
const MEMBERS_MAX = 100
const GZIP_TRAILER_BYTES = 8

function inflateData(layer: string, data: Buffer, bytesMax: number): Promise<InflatedData> {
  return new Promise((resolve, reject) => {
    inflateRaw(data, { maxOutputLength: bytesMax, info: true } as OutputCap, (error, result) => {
      if (error) reject(new DecodingError(isTooLarge(error) ? 'too_large' : 'corrupt', layer, error))
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
