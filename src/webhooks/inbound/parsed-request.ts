import type { WebhookPlan } from '../../engine/definitions/index.ts'
import {
  CharsetError,
  charsetOf,
  decodeAnyText,
  decodeLarge,
  FORM_TOO_LARGE,
  formFields,
  isFormType,
  isJsonType,
  readForm,
  readMultipart,
  responseFormat,
  type WebhookRequest,
} from '../../engine/formats/index.ts'
import { Failure, parseFormFields } from '../../foundation/base/index.ts'
import { DecodingError, decodeBody, isIdentityCoding } from '../../foundation/egress/index.ts'
import type { TaskOwner } from '../../foundation/fair/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
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
  /** The parsed body; null when there is none, or it is not read. */
  readonly body: Json
  /** Why the body cannot be read as its headers say. */
  readonly problem: BodyProblem | undefined
}

/** Why a body cannot be read, and the status that says so: its coding, charset or type is not known, it is not what it says, too large. */
export interface BodyProblem {
  readonly status: 400 | 413 | 415
  readonly message: string
}

/** Largest body before compression; of an authenticated sender as much as the definition allows to be sent. */
export const DECODED_BYTES_MAX = 8 * 1024 * 1024

/** Largest body before compression of an authenticated sender. */
export function decodedBytesMax({ bodyBytesMax }: Pick<WebhookPlan, 'bodyBytesMax'>): number {
  return Math.max(bodyBytesMax, DECODED_BYTES_MAX)
}

const XML_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?xml\b/i
const NDJSON_TYPE = /^application\/(?:x-)?(?:ndjson|jsonlines|json-lines)\b/i
const MULTIPART_TYPE = /^multipart\/form-data\b/i
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
    decoded: isIdentityCoding(headers['content-encoding']) ? body : undefined,
    body: null,
    problem: undefined,
  }
}

/** How a body is read. */
export interface BodyReadLimits extends TaskOwner {
  /** Of the decompressed body. */
  readonly bytesMax: number
  /** Field of a form that holds the body as JSON. */
  readonly formJsonField?: string | undefined
}

/**
 * Decompresses the body and parses it by its content type: JSON, a form (repeated fields are lists, of files the name, type and
 * size), XML, newline-delimited JSON; anything else as text, or as JSON where it begins like an object or a list.
 *
 * Of a body that cannot be read the reason is returned.
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
  if (!(decoded instanceof Uint8Array)) return { ...head, decoded: undefined, problem: decoded }
  try {
    return { ...head, decoded, body: await parseBody(decoded, headers['content-type'] ?? '', limits) }
  } catch (error) {
    if (error instanceof Failure) throw error
    const message = `the body ${error instanceof Error ? error.message : 'does not parse'}`
    return { ...head, decoded, problem: { status: error instanceof CharsetError ? 415 : 400, message } }
  }
}

/** Decompresses the body alone; with the reason where that is not possible. @returns undefined when it is larger than allowed */
export async function decodeBodyOf(head: ParsedRequest, bytesMax: number): Promise<ParsedRequest | undefined> {
  const decoded = await decode(head.raw, head.headers['content-encoding'], bytesMax)
  if (decoded === 'too large') return undefined
  return decoded instanceof Uint8Array ? { ...head, decoded } : { ...head, decoded: undefined, problem: decoded }
}

/** `parseHead` and `parseBodyOf` in one, of a request that is authenticated. */
export async function parseRequest(
  request: RawRequest,
  publicUrl: string,
  owner: TaskOwner,
  webhook: Pick<WebhookPlan, 'bodyBytesMax' | 'formJsonField'>,
): Promise<ParsedRequest> {
  const head = parseHead(request, publicUrl)
  const bytesMax = decodedBytesMax(webhook)
  const { formJsonField } = webhook
  return (await parseBodyOf(head, { ...owner, bytesMax, formJsonField })) ?? tooLarge(head, bytesMax)
}

/** A request whose body is not read because of its size. */
export function tooLarge(head: ParsedRequest, bytesMax: number): ParsedRequest {
  const message = `the body has more than ${bytesMax} bytes, decompressed`
  return { ...head, decoded: undefined, problem: { status: 413, message } }
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
): Promise<Uint8Array | 'too large' | BodyProblem> {
  try {
    return await decodeBody(encoding, Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), bytesMax)
  } catch (error) {
    if (!(error instanceof DecodingError)) throw error
    switch (error.kind) {
      case 'too_large':
        return 'too large'
      case 'unknown':
        return { status: 415, message: `the body has the content encoding ${error.coding}, which is not supported` }
      case 'corrupt':
        return { status: 400, message: 'the body is not encoded as its content-encoding says' }
    }
  }
}

async function parseBody(bytes: Uint8Array, contentType: string, limits: BodyReadLimits): Promise<Json> {
  const charset = charsetOf(contentType)
  if (isJsonType(contentType)) return await decodeLarge(responseFormat('json'), bytes, charset, limits)
  if (isFormType(contentType)) return await parseForm(bytes, contentType, limits)
  if (MULTIPART_TYPE.test(contentType)) return await jsonFieldOr(await readMultipart(bytes, contentType), limits)
  if (XML_TYPE.test(contentType)) return await decodeLarge(responseFormat('xml'), bytes, charset, limits)
  if (NDJSON_TYPE.test(contentType)) return await decodeLarge(responseFormat('ndjson'), bytes, charset, limits)
  const text = decodeAnyText(bytes, charset)
  return JSON_START.test(text) ? await parseOrText(bytes, charset, text, limits) : text
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

async function parseForm(bytes: Uint8Array, contentType: string, limits: BodyReadLimits): Promise<Json> {
  const form = readForm(bytes, contentType)
  if (form === undefined) throw new Error(FORM_TOO_LARGE)
  return await jsonFieldOr(formFields(form), limits)
}

/** The field of a form that holds the body as JSON, where the definition names one; else the form. */
async function jsonFieldOr(form: JsonObject, { formJsonField: name, ...owner }: BodyReadLimits): Promise<Json> {
  const text = name !== undefined && Object.hasOwn(form, name) ? form[name] : undefined
  if (typeof text !== 'string') return form
  try {
    return await decodeLarge(responseFormat('json'), Buffer.from(text), undefined, owner)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Error(`has no JSON in its field ${name}`, { cause: error })
  }
}
