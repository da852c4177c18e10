import { Readable } from 'node:stream'
import type { Json } from '../base/index.ts'
import type { MethodPlan, Plan } from '../definitions/index.ts'
import { decodeContent, type EgressStreamResponse, type HttpClient } from '../egress/index.ts'
import type { AuthorizedRequest } from './build-request.ts'
import { type CallContext, createCallContext } from './call-context.ts'
import { classifyResponse } from './classify-response.ts'
import { withCredentialRefresh } from './credential-refresh.ts'
import { decodeResponse, isJsonType } from './decode-response.ts'
import type { CallDependencies } from './dependencies.ts'
import {
  type AttemptResult,
  type ClassifiedSuccess,
  type RateLimitInfo,
  type StreamedResponse,
  type StreamOutcome,
  withoutRetryHint,
} from './outcome.ts'
import { readRateLimit } from './rate-limit-headers.ts'
import { redactRateLimit } from './redaction.ts'
import {
  type AccountAccess,
  RESPONSE_BYTES_MAX,
  STREAM_BYTES_MAX,
  STREAM_TIMEOUT_MS,
  type StreamRequest,
} from './request.ts'
import { withRetries } from './retry.ts'
import { acquirePermit, limitedByBudget, prepareRequest, redirectsMaxFor } from './send.ts'

/**
 * One call whose bodies pass through: the stages of `call`, but the answer is handed on as soon as its head is there.
 *
 * Errors and rate limits are still told from successes; see `classifyStreamedResponse`. A list is asked for as its method stands,
 * without paging.
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
  const job =
    bodyStream === undefined ? createCallContext(plan, account, request) : createUploadContext(plan, account, request)
  const ask = () => withRetries(deps, job, () => streamAttempt(deps, job, bodyStream))
  return withCredentialRefresh(deps, job, ask, bodyStream === undefined)
}

/** The body is not the definition's to write, and nothing can be repeated. */
function createUploadContext(plan: Plan, account: AccountAccess, request: StreamRequest): CallContext {
  const once = { ...request, body: undefined, limits: { ...request.limits, attemptsMax: 1 } }
  const { target, ...job } = createCallContext(plan, account, once)
  return { ...job, target: { ...target, method: { ...target.method, body: undefined } } }
}

async function streamAttempt(
  deps: CallDependencies,
  job: CallContext,
  bodyStream: StreamRequest['bodyStream'],
): Promise<AttemptResult<StreamOutcome>> {
  const { method } = job.target
  const ready = await prepareRequest(deps, job, undefined)
  const grant = await acquirePermit(deps, job)
  if (grant.kind === 'limited') return withoutRetryHint(limitedByBudget(grant.retryAfterSeconds))
  const opened = await openStream(deps.http, ready, job.request, bodyStream, method.timeoutMs).catch(
    async (error: unknown) => {
      await grant.release()
      throw error
    },
  )
  opened.body.once('close', () => void grant.release())
  const attempted = await classifyStreamedResponse(deps, method, opened, ready.publicUrl).catch((error: unknown) => {
    opened.body.destroy()
    throw error
  })
  deps.budgets?.observe(method, job.access, attempted.outcome)
  return attempted
}

/** Sends; only encodings that the caller can read are asked for, because the bytes are handed on as they come. */
function openStream(
  http: Pick<HttpClient, 'stream'>,
  { method, url, headers, body }: AuthorizedRequest,
  { limits, signal }: CallContext['request'],
  bodyStream: StreamRequest['bodyStream'],
  idleTimeoutMs: number,
): Promise<EgressStreamResponse> {
  const bodyBytes = bodyStream === undefined ? undefined : declaredBytes(headers)
  const content = bodyStream ?? body
  return http.stream({
    method,
    url,
    headers: { 'accept-encoding': 'identity', ...headers },
    ...(content === undefined ? {} : { body: content }),
    ...(bodyBytes === undefined ? {} : { bodyBytes }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? STREAM_TIMEOUT_MS,
    idleTimeoutMs,
    redirects: redirectsMaxFor(method),
    maxResponseBytes: limits?.responseBytesMax ?? STREAM_BYTES_MAX,
  })
}

function declaredBytes({ 'content-length': length = '' }: AuthorizedRequest['headers']): number | undefined {
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/** How much of an answer is read to judge it, as sent. No error is longer. */
const CLASSIFIED_BYTES_MAX = 1024 * 1024

type ClassifierDependencies = Pick<CallDependencies, 'evaluator' | 'clock' | 'redaction'>

/**
 * Rate limit and error of an answer whose body has not been read.
 *
 * What has to be read to be judged is read: an error by its status, and JSON where the definition has expressions about it.
 * A success is handed on with the very bytes that came. Everything else, and JSON that is too long for an error, is a
 * success by its status.
 *
 * @param url what was requested, without authorization parameters
 * @throws Failure EXPRESSION_FAILED and, while the body is read, what the body fails with
 */
async function classifyStreamedResponse(
  deps: ClassifierDependencies,
  method: MethodPlan,
  opened: EgressStreamResponse,
  url: string,
): Promise<AttemptResult<StreamOutcome>> {
  const { status, headers, body } = opened
  const isError = status >= 400
  if (!isError && !hasExpressions(method, headers)) return withoutRetryHint(await passThrough(deps, method, opened))
  const { bytes, isWhole } = await readPrefix(body, CLASSIFIED_BYTES_MAX)
  if (!isWhole && !isError) {
    body.unshift(bytes)
    return withoutRetryHint(await passThrough(deps, method, opened))
  }
  body.destroy()
  const content = isWhole
    ? await decodeContent(new URL(url).host, headers, bytes, RESPONSE_BYTES_MAX)
    : { headers, body: readablePrefix(opened, bytes) }
  const response = await decodeResponse(method, { status, url, ...content })
  const { outcome: answer, ...rest } = await classifyResponse(deps, method, response, url)
  switch (answer.kind) {
    case 'rate_limited':
      return { outcome: answer, ...rest }
    case 'upstream_error':
      if (answer.action !== 'ignore' && answer.action !== 'stop') return { outcome: answer, ...rest }
      return withoutRetryHint(streamOfBytes(status, headers, bytes, answer.rateLimit))
    case 'success':
      return withoutRetryHint(successStream(answer, response.body, opened, bytes))
  }
}

function hasExpressions({ errorExpression, rateLimit }: MethodPlan, headers: EgressStreamResponse['headers']): boolean {
  const areAbout = errorExpression !== undefined || rateLimit.isRateLimited !== undefined
  return areAbout && isJsonType(headers['content-type'] ?? '')
}

/** Nothing of the body is looked at; expressions about what is left of a limit see no body. */
async function passThrough(
  deps: ClassifierDependencies,
  { rateLimit: rules }: MethodPlan,
  { status, headers, body }: EgressStreamResponse,
): Promise<StreamedResponse> {
  const told = await readRateLimit(deps, rules, { status, headers, body: null })
  const rateLimit = redactRateLimit(deps.redaction, told)
  return { kind: 'stream', status, headers, body, rateLimit }
}

/** The bytes that came, unless an expression made another body of them. */
function successStream(
  { response, rateLimit }: ClassifiedSuccess,
  before: Json,
  { headers }: EgressStreamResponse,
  bytes: Buffer,
): StreamedResponse {
  if (response.body === before)
    return streamOfBytes(response.status, { ...headers, ...response.headers }, bytes, rateLimit)
  const { 'content-length': _before, 'content-encoding': _too, ...kept } = response.headers
  const json = Buffer.from(JSON.stringify(response.body))
  return streamOfBytes(response.status, { ...kept, 'content-type': 'application/json' }, json, rateLimit)
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

/** Reads at most so much; what is left stays in the stream. */
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

/** What can be read of an error that is too long: nothing when it is encoded, because only whole bodies can be decoded. */
function readablePrefix({ headers }: EgressStreamResponse, bytes: Buffer): Buffer {
  return headers['content-encoding'] === undefined ? bytes : Buffer.alloc(0)
}
