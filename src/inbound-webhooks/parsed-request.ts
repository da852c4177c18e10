import {
  codingOf,
  decompress,
  Failure,
  FORM_FIELDS_MAX,
  type Json,
  type JsonObject,
  parseFormFields,
  type TaskOwner,
} from '../base/index.ts'
import type { WebhookPlan } from '../definitions/index.ts'
import { charsetOf, decodeLarge, decodeText, responseFormat, type WebhookRequest } from '../formats/index.ts'
import type { HeaderList } from './inbound-event.ts'

/** A request with its whole body, as it came in or as it was stored. */
export interface RawRequest {
  /** Upper case. */
  readonly method: string
  readonly path: string
  /** As received, without the question mark. */
  readonly query: string
  readonly headers: HeaderList
  readonly body: Uint8Array
}

/** A request as expressions and signatures read it; see `TransformedRequest`. */
export interface ParsedRequest {
  readonly method: string
  readonly path: string
  /** Public address of this service, with path and query as received. */
  readonly url: string
  /** By lower-case name; repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>
  /** The first value of each parameter; none of a query string with too many. */
  readonly query: Readonly<Record<string, string>>
  /** The bytes as received. */
  readonly raw: Uint8Array
  /** Without the content coding; absent when they cannot be decoded. */
  readonly decoded: Uint8Array | undefined
  /** The parsed body; null when there is none, or it cannot be parsed. */
  readonly body: Json
  /** Why the body cannot be decoded or parsed. */
  readonly problem: string | undefined
}

/** Largest body before compression. */
export const DECODED_BYTES_MAX = 8 * 1024 * 1024

const JSON_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?json\b/i
const XML_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?xml\b/i
const NDJSON_TYPE = /^application\/(?:x-)?(?:ndjson|jsonlines|json-lines)\b/i
const FORM_TYPE = /^application\/x-www-form-urlencoded\b/i
const JSON_START = /^\s*[[{]/

/**
 * Reads headers and parameters; the body is left as it came.
 *
 * @param publicUrl without a trailing slash
 */
export function parseHead(request: RawRequest, publicUrl: string): ParsedRequest {
  const { method, path, query, body } = request
  const headers = joinHeaders(request.headers)
  return {
    method,
    path,
    url: `${publicUrl}${path}${query === '' ? '' : `?${query}`}`,
    headers,
    query: firstValues(query),
    raw: body,
    decoded: isCompressed(headers) ? undefined : body,
    body: null,
    problem: undefined,
  }
}

/** How a body is read. */
export interface BodyReadLimits extends TaskOwner {
  /** Of the decompressed body. */
  readonly bytesMax: number
}

/**
 * Decompresses the body and parses it by its content type: JSON, a form (repeated fields are lists), XML, newline-delimited
 * JSON; anything else as text, or as JSON where it begins like an object or a list.
 *
 * A body that cannot be read is null, with the reason.
 *
 * @returns undefined when the body is larger than allowed
 * @throws Failure RATE_LIMITED when too many bodies of the owner wait, CANCELLED
 */
export async function parseBodyOf(head: ParsedRequest, limits: BodyReadLimits): Promise<ParsedRequest | undefined> {
  const { raw, headers } = head
  if (raw.byteLength === 0) return { ...head, decoded: raw }
  if (raw.byteLength > limits.bytesMax) return undefined
  const decoded = await decode(raw, headers['content-encoding'], limits.bytesMax)
  if (decoded === 'too large') return undefined
  if (!(decoded instanceof Uint8Array)) return { ...head, decoded: undefined, ...decoded }
  try {
    return { ...head, decoded, body: await parseBody(decoded, headers['content-type'] ?? '', limits) }
  } catch (error) {
    if (error instanceof Failure) throw error
    return { ...head, decoded, problem: `the body ${error instanceof Error ? error.message : 'does not parse'}` }
  }
}

/** Decompresses the body alone; with the reason where that is not possible. @returns undefined when it is larger than allowed */
export async function decodeBodyOf(head: ParsedRequest, bytesMax: number): Promise<ParsedRequest | undefined> {
  const decoded = await decode(head.raw, head.headers['content-encoding'], bytesMax)
  if (decoded === 'too large') return undefined
  return decoded instanceof Uint8Array ? { ...head, decoded } : { ...head, decoded: undefined, ...decoded }
}

/** `parseHead` and `parseBodyOf` in one, of a request that is authenticated. */
export async function parseRequest(request: RawRequest, publicUrl: string, owner: TaskOwner): Promise<ParsedRequest> {
  const head = parseHead(request, publicUrl)
  const parsed = await parseBodyOf(head, { ...owner, bytesMax: DECODED_BYTES_MAX })
  return parsed ?? tooLarge(head)
}

/** A request whose body is not read because of its size. */
export function tooLarge(head: ParsedRequest): ParsedRequest {
  return { ...head, decoded: undefined, problem: `the request is larger than ${DECODED_BYTES_MAX} bytes` }
}

function isCompressed(headers: Readonly<Record<string, string>>): boolean {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  return coding !== '' && coding !== 'identity'
}

/** What a signature is computed over: of a transformed request the bytes are still those that were received. */
export function signedRequestOf(request: ParsedRequest, { bodyStage }: WebhookPlan): WebhookRequest {
  const { method, url, headers, query, raw, decoded = new Uint8Array(), body: payload } = request
  return { method, url, headers, query, body: bodyStage === 'raw' ? raw : decoded, payload }
}

/** The input of expressions over a request. */
export function expressionInput({ method, path, headers, query, body }: ParsedRequest): JsonObject {
  return { body, headers, query, method, path }
}

function joinHeaders(list: HeaderList): Record<string, string> {
  const headers = new Map<string, string>()
  for (const [name, value] of list) {
    const key = name.toLowerCase()
    const before = headers.get(key)
    headers.set(key, before === undefined ? value : `${before}, ${value}`)
  }
  return Object.fromEntries(headers)
}

function firstValues(query: string): Record<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of parseFormFields(Buffer.from(query)) ?? []) if (!values.has(name)) values.set(name, value)
  return Object.fromEntries(values)
}

/** The bytes, or why they cannot be decoded. */
async function decode(
  raw: Uint8Array,
  encoding: string | undefined,
  bytesMax: number,
): Promise<Uint8Array | 'too large' | { readonly problem: string }> {
  try {
    const coding = codingOf(encoding)
    return coding === undefined ? raw : await decompress(Buffer.from(raw), coding, bytesMax)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return error.reason === 'REQUEST_TOO_LARGE' ? 'too large' : { problem: error.publicMessage }
  }
}

async function parseBody(bytes: Uint8Array, contentType: string, owner: TaskOwner): Promise<Json> {
  const charset = charsetOf(contentType)
  if (JSON_TYPE.test(contentType)) return await decodeLarge(responseFormat('json'), bytes, charset, owner)
  if (FORM_TYPE.test(contentType)) return parseForm(bytes)
  if (XML_TYPE.test(contentType)) return await decodeLarge(responseFormat('xml'), bytes, charset, owner)
  if (NDJSON_TYPE.test(contentType)) return await decodeLarge(responseFormat('ndjson'), bytes, charset, owner)
  const text = decodeText(bytes, charset)
  return JSON_START.test(text) ? await parseOrText(bytes, charset, text, owner) : text
}

/** Some third parties send JSON as text, or without a content type. */
async function parseOrText(
  bytes: Uint8Array,
  charset: string | undefined,
  text: string,
  owner: TaskOwner,
): Promise<Json> {
  try {
    return await decodeLarge(responseFormat('json'), bytes, charset, owner)
  } catch (error) {
    if (error instanceof Failure) throw error
    return text
  }
}

function parseForm(bytes: Uint8Array): JsonObject {
  const form = parseFormFields(bytes)
  if (form === undefined) throw new Error(`has more than ${FORM_FIELDS_MAX} form fields, or is too long`)
  const fields = new Map<string, string[]>()
  for (const [name, value] of form) {
    const before = fields.get(name)
    if (before === undefined) fields.set(name, [value])
    else before.push(value)
  }
  return Object.fromEntries(
    [...fields].map(([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  )
}
