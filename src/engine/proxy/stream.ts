import { Readable } from 'node:stream'
import {
  decodeContent,
  type EgressStreamResponse,
  isIdentityCoding,
  type RequestTimings,
} from '../../foundation/egress/index.ts'
import { canonicalJson, type Json } from '../../foundation/json/index.ts'
import type { MethodPlan, Plan } from '../definitions/plan.ts'
import { isJsonType } from '../formats/response/answer-outcome.ts'
import type { AuthorizedRequest } from './build-request.ts'
import { type CallContext, createCallContext } from './call-context.ts'
import { type LogEntry, openLogEntry } from './call-log.ts'
import { classifyResponse } from './classify-response.ts'
import { withCredentialRefresh } from './credential-refresh.ts'
import { type DecodedResponse, decodeResponse, hasContent } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import type {
  AttemptResult,
  ClassifiedSuccess,
  RateLimitInfo,
  StreamedResponse,
  StreamOutcome,
  UpstreamErrorOutcome,
} from './outcome.ts'
import { readRateLimit } from './rate-limit-headers.ts'
import { redactRateLimit } from './redaction.ts'
import { type AccountAccess, STREAM_BYTES_MAX, STREAM_TIMEOUT_MS, type StreamRequest } from './request.ts'
import { withRetries } from './retry.ts'
import { acquirePermit, limitedByBudget, prepareRequest, redirectsMaxFor, takeChallenge } from './send.ts'

/**
 * A streamed call: the same stages as `call`, but the outcome is there as soon as the head of the response is. Errors and rate
 * limits are classified; see `classifyStreamedResponse`. A list is not paged.
 *
 * @throws Failure as `call` does
 */
export async function stream(
  deps: CallDependencies,
  plan: Plan,
  account: AccountAccess,
  request: StreamRequest,
): Promise<StreamOutcome> {
  const { bodyStream } = request
  const context =
    bodyStream === undefined ? createCallContext(plan, account, request) : createUploadContext(plan, account, request)
  let last: StreamAttempt | undefined
  let attempts = 0
  const attempt = async () => {
    last?.passedOn?.body.destroy()
    last = await streamAttempt(deps, context, bodyStream, ++attempts)
    return last
  }
  const send = () => withRetries(deps, context, attempt)
  try {
    const outcome = await withCredentialRefresh(deps, context, send, bodyStream === undefined)
    return last?.outcome === outcome ? (last.passedOn ?? outcome) : outcome
  } catch (error) {
    last?.passedOn?.body.destroy()
    throw error
  }
}

/** An attempt, with the answer that the caller gets although its status says that it is an error. */
interface StreamAttempt extends AttemptResult<StreamOutcome> {
  readonly passedOn?: StreamedResponse
}

/** An upload replaces the body of the definition and cannot be repeated. */
function createUploadContext(plan: Plan, account: AccountAccess, request: StreamRequest): CallContext {
  const once = { ...request, body: undefined, limits: { ...request.limits, attemptsMax: 1 } }
  const { target, ...context } = createCallContext(plan, account, once)
  return { ...context, target: { ...target, method: { ...target.method, body: undefined } } }
}

async function streamAttempt(
  deps: CallDependencies,
  context: CallContext,
  bodyStream: StreamRequest['bodyStream'],
  number: number,
  isAnswer = false,
): Promise<StreamAttempt> {
  const { method } = context.target
  const request = await prepareRequest(deps, context)
  const permit = await acquirePermit(deps, context)
  if (permit.kind === 'limited') return { outcome: limitedByBudget(permit.retryAfterSeconds) }
  const entry = openLogEntry(deps, context, request, number)
  const opened = openStream(deps, request, context.request, bodyStream, method.timeoutMs, entry?.timings)
  const response = await opened.catch(async (error: unknown) => {
    deps.requestLine.logId = entry?.fail(error)
    await permit.release()
    throw error
  })
  deps.requestLine.logId = entry?.answered(response)
  response.body.once('close', () => void permit.release())
  const classified = classifyStreamedResponse(deps, method, response, request.publicUrl, entry)
  const result = await classified.catch((error: unknown) => {
    entry?.fail(error)
    response.body.destroy()
    throw error
  })
  entry?.end(result.outcome)
  deps.callLimiter?.observe(method, context.access, result.outcome)
  if (isAnswer || !takeChallenge(context, response) || bodyStream !== undefined) return result
  response.body.destroy()
  return await streamAttempt(deps, context, bodyStream, number, true)
}

/** Sends without content encodings, unless the caller accepts some: the bytes are passed on as they arrive. */
function openStream(
  { http, owner }: Pick<CallDependencies, 'http' | 'owner'>,
  { method, url, headers, body }: AuthorizedRequest,
  { limits, signal }: CallContext['request'],
  bodyStream: StreamRequest['bodyStream'],
  idleTimeoutMs: number,
  timings: RequestTimings | undefined,
): Promise<EgressStreamResponse> {
  const bodyBytes = bodyStream === undefined ? undefined : declaredBytes(headers)
  const content = bodyStream ?? body
  return http.stream({
    method,
    url,
    headers: { 'accept-encoding': 'identity', ...headers },
    owner,
    ...(content === undefined ? {} : { body: content }),
    ...(bodyBytes === undefined ? {} : { bodyBytes }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? STREAM_TIMEOUT_MS,
    idleTimeoutMs,
    redirects: redirectsMaxFor(method),
    maxResponseBytes: limits?.responseBytesMax ?? STREAM_BYTES_MAX,
    ...(timings === undefined ? {} : { timings }),
  })
}

function declaredBytes({ 'content-length': length = '' }: AuthorizedRequest['headers']): number | undefined {
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/** Bytes of a response that are read to classify it, as sent; no error response is longer. */
const CLASSIFIED_BYTES_MAX = 1024 * 1024

type ClassifierDependencies = Pick<
  CallDependencies,
  'evaluator' | 'environmentVariables' | 'clock' | 'redaction' | 'requestLine' | 'owner'
>

/**
 * Classifies a response whose body has not been read. The body is read first where that is needed: of an error status, and of
 * JSON when the definition has expressions about it. A success passes on the bytes as they came. Any other response, and JSON
 * longer than an error, is a success by its status.
 *
 * @param url URL of the request, without authorization parameters
 * @throws Failure EXPRESSION_FAILED, and the failures of the body
 */
async function classifyStreamedResponse(
  deps: ClassifierDependencies,
  method: MethodPlan,
  opened: EgressStreamResponse,
  url: string,
  entry: LogEntry | undefined,
): Promise<StreamAttempt> {
  const { status, headers, body } = opened
  const isError = status >= 400
  if (isWithoutResult(status)) {
    const head = { status, headers, body: null }
    const { outcome, retryAfterSeconds } = await classifyResponse(deps, method, head, url, false)
    if (outcome.kind !== 'success') {
      body.destroy()
      return { outcome, retryAfterSeconds }
    }
  }
  if (!isError && !hasExpressions(method, headers)) return { outcome: await passThrough(deps, method, opened) }
  const { bytes, isWhole } = await readPrefix(body, CLASSIFIED_BYTES_MAX)
  if (!isWhole && !isError) return { outcome: await unread(deps, method, opened, bytes) }
  const content = isWhole
    ? await decodeContent(new URL(url).host, headers, bytes, { maxResponseBytes: method.responseBytesMax })
    : { headers, body: readablePrefix(opened, bytes) }
  entry?.received(content.body)
  const response = await decodeResponse(method, { status, url, ...content }, deps)
  const { outcome, retryAfterSeconds } = await classifyResponse(deps, method, response, url, hasContent(content))
  if (outcome.kind === 'upstream_error' && outcome.isPassedOn) {
    const passedOn = isWhole
      ? passedOnStream(outcome, response.body, opened, bytes)
      : await unread(deps, method, opened, bytes)
    return { outcome, retryAfterSeconds, passedOn }
  }
  body.destroy()
  switch (outcome.kind) {
    case 'rate_limited':
      return { outcome, retryAfterSeconds }
    case 'upstream_error':
      if (outcome.action !== 'ignore' && outcome.action !== 'stop') return { outcome, retryAfterSeconds }
      return { outcome: streamOfBytes(status, headers, bytes, outcome.rateLimit) }
    case 'success':
      return { outcome: successStream(outcome, response.body, opened, bytes) }
  }
}

/** Whether the status alone may say that there is no result yet, or not here: 202, and redirects that were not followed. */
function isWithoutResult(status: number): boolean {
  return status === 202 || (status >= 300 && status < 400 && status !== 304)
}

/** A body whose first bytes were read, as a whole. */
function unread(
  deps: ClassifierDependencies,
  method: MethodPlan,
  opened: EgressStreamResponse,
  bytes: Buffer,
): Promise<StreamedResponse> {
  opened.body.unshift(bytes)
  return passThrough(deps, method, opened)
}

function hasExpressions({ errorExpression, rateLimit }: MethodPlan, headers: EgressStreamResponse['headers']): boolean {
  const areAbout = errorExpression !== undefined || rateLimit.isRateLimited !== undefined
  return areAbout && isJsonType(headers['content-type'] ?? '')
}

/** Passes the body on unread; rate limit expressions see no body. */
async function passThrough(
  deps: ClassifierDependencies,
  { rateLimit: rules }: MethodPlan,
  { status, headers, body }: EgressStreamResponse,
): Promise<StreamedResponse> {
  const info = await readRateLimit(deps, rules, { status, headers, body: null })
  const rateLimit = redactRateLimit(deps.redaction, info)
  return { kind: 'stream', status, headers, body, rateLimit }
}

/** The bytes as they came, unless the error expression replaced the body. */
function successStream(
  { response, rateLimit }: ClassifiedSuccess,
  before: Json,
  { headers }: EgressStreamResponse,
  bytes: Buffer,
): StreamedResponse {
  return response.body === before
    ? streamOfBytes(response.status, { ...headers, ...response.headers }, bytes, rateLimit)
    : streamOfJson(response, rateLimit)
}

/** An error that is passed on: the bytes as they came, unless credentials in them were masked. */
function passedOnStream(
  { status, headers, body, rateLimit }: UpstreamErrorOutcome,
  before: Json,
  opened: EgressStreamResponse,
  bytes: Buffer,
): StreamedResponse {
  return canonicalJson(body) === canonicalJson(before)
    ? streamOfBytes(status, { ...opened.headers, ...headers }, bytes, rateLimit)
    : streamOfJson({ status, headers, body }, rateLimit)
}

function streamOfJson(
  { status, headers, body }: DecodedResponse,
  rateLimit: RateLimitInfo | undefined,
): StreamedResponse {
  const { 'content-length': _before, 'content-encoding': _too, ...kept } = headers
  const json = Buffer.from(JSON.stringify(body))
  return streamOfBytes(status, { ...kept, 'content-type': 'application/json' }, json, rateLimit)
}

function streamOfBytes(
  status: number,
  headers: StreamedResponse['headers'],
  bytes: Buffer,
  rateLimit: RateLimitInfo | undefined,
): StreamedResponse {
  const body = Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false })
  return { kind: 'stream', status, headers, body, rateLimit }
}

/** Reads the first `bytesMax` bytes; the rest stays in the stream. */
async function readPrefix(
  body: Readable,
  bytesMax: number,
): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk)
    length += chunk.length
    if (length > bytesMax) return { bytes: Buffer.concat(chunks), isWhole: false }
  }
  return { bytes: Buffer.concat(chunks), isWhole: true }
}

/** The readable part of an error that is too long; empty when it is encoded, because only whole bodies can be decoded. */
function readablePrefix({ headers }: EgressStreamResponse, bytes: Buffer): Buffer {
  return isIdentityCoding(headers['content-encoding']) ? bytes : Buffer.alloc(0)
}
