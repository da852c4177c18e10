import { Failure } from '../../foundation/base/index.ts'
import type { EgressResponse } from '../../foundation/egress/index.ts'
import type { TaskOwner } from '../../foundation/fair/index.ts'
import { type Json, JsonTextError, parseJsonInSlices } from '../../foundation/json/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import { isJsonType } from '../formats/response/answer-outcome.ts'
import { CharsetError, charsetOf, decodeAnyText, decodeLoosely } from '../formats/response/charset.ts'
import { formatForType, isTsvType } from '../formats/response/csv.ts'
import { decodeLarge } from '../formats/response/decode-large.ts'
import { responseFormat } from '../formats/response/registry.ts'
import { BodyFormatError } from '../formats/response/response.ts'

/** A response with its decoded body. */
export interface DecodedResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** `null` when the response had none. */
  readonly body: Json
}

const NDJSON_TYPE = /^application\/(?:x-)?(?:ndjson|jsonlines|json-lines)\b/i

const HTML_START = /^(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)[\s>]/i
const HTML_START_BYTES = 256

/**
 * Decodes the body in the format of the method, else by its content type.
 *
 * Text is decoded by the charset of the content type, UTF-8 by default. Error responses are decoded leniently: as JSON by their
 * content type although the method expects a file; an HTML page as text; invalid bytes as replacement characters.
 *
 * @param owner see `decodeLarge`
 * @throws Failure UPSTREAM_INVALID_RESPONSE when a success is not in the format or the charset it claims, RATE_LIMITED, CANCELLED
 */
export async function decodeResponse(
  method: MethodPlan,
  { status, headers, body }: EgressResponse,
  owner: TaskOwner,
): Promise<DecodedResponse> {
  if (body.byteLength === 0 || (ignoresBlanks(method) && !hasContent({ body }))) return { status, headers, body: null }
  const contentType = headers['content-type'] ?? ''
  try {
    return { status, headers, body: await readBody(method, status, contentType, body, owner) }
  } catch (error) {
    if (error instanceof Failure) throw error
    if (status >= 400) return { status, headers, body: decodeLoosely(body, charsetOf(contentType)) }
    const problem = isExplained(error) ? error.message : 'does not parse'
    throw new Failure('UPSTREAM_INVALID_RESPONSE', `the upstream answered ${status} with a body that ${problem}`, {
      isPermanent: isPermanentError(error),
      cause: error,
    })
  }
}

/** Whether the message says what is wrong, and quotes nothing of the body. */
function isExplained(error: unknown): error is Error {
  return error instanceof JsonTextError || error instanceof CharsetError || error instanceof BodyFormatError
}

/** Whether a retry is pointless: the response itself cannot be decoded, rather than a part of it being lost. */
function isPermanentError(error: unknown): boolean {
  if (error instanceof CharsetError || error instanceof BodyFormatError) return true
  return error instanceof JsonTextError && error.kind !== 'syntax'
}

/** White space is no value, unless the body is one text. */
function ignoresBlanks({ responseFormat: format }: MethodPlan): boolean {
  return format?.format !== 'text' && format?.format !== 'binary'
}

/** Longest body that is read for whether it is blank. */
const BLANK_BYTES_MAX = 64

/** Whether a body holds more than white space. */
export function hasContent({ body }: Pick<EgressResponse, 'body'>): boolean {
  return body.byteLength > BLANK_BYTES_MAX || /[^\s\0]/.test(Buffer.from(body).toString('latin1'))
}

async function readBody(
  { responseFormat: format }: MethodPlan,
  status: number,
  contentType: string,
  body: Uint8Array,
  owner: TaskOwner,
): Promise<Json> {
  const isJson = isJsonType(contentType)
  if (format !== undefined && format.format !== 'binary' && format.format !== 'text' && isHtml(body)) {
    if (status >= 400) return decodeLoosely(body, charsetOf(contentType))
    throw new Error('an HTML page')
  }
  const charset = charsetOf(contentType)
  if (format !== undefined && !(status >= 400 && isJson))
    return decodeLarge(formatForType(format, contentType), body, charset, owner)
  if (isJson) return decodeLarge(responseFormat('json'), body, charset, owner)
  if (isTsvType(contentType)) return decodeLarge(responseFormat('tsv'), body, charset, owner)
  if (NDJSON_TYPE.test(contentType)) return decodeLarge(responseFormat('ndjson'), body, charset, owner)
  return await sniffBody(decodeAnyText(body, charset))
}

/** A login or error page, which CSV and XML would read as records. */
function isHtml(body: Uint8Array): boolean {
  return HTML_START.test(Buffer.from(body.subarray(0, HTML_START_BYTES)).toString('latin1'))
}

/** Some APIs send JSON as text or without a content type. */
async function sniffBody(text: string): Promise<Json> {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return await parseJsonInSlices(text)
  } catch (error) {
    if (error instanceof JsonTextError && error.kind === 'syntax') return text
    throw error
  }
}
