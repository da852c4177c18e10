import { Failure } from '../../foundation/base/index.ts'
import { type EgressResponse, type RequestTimings, ResponseTooLargeError } from '../../foundation/egress/index.ts'
import { RESPONSE_BYTES_MAX } from '../definitions/method-schema.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import type { PageParams } from '../formats/pagination/paginator.ts'
import { type AuthorizedRequest, authorizeRequest, buildRequest } from './build-request.ts'
import { type CallContext, formatContext, templateScope } from './call-context.ts'
import { openLogEntry } from './call-log.ts'
import { classifyResponse } from './classify-response.ts'
import { withCredentialRefresh } from './credential-refresh.ts'
import { decodeResponse, hasContent } from './decode-response.ts'
import type { CallDependencies, CallPermit } from './dependencies.ts'
import type { AttemptResult, ClassifiedResponse, RateLimitedOutcome } from './outcome.ts'
import type { ProxyRequest } from './request.ts'
import { withRetries } from './retry.ts'

/**
 * Sends the request of a call, with the retries of its definition and once more after a credential refresh.
 *
 * @param prepare builds and authorizes the request anew for each attempt
 * @throws Failure of any stage
 */
export function sendWithRetries(
  deps: CallDependencies,
  context: CallContext,
  prepare = () => prepareRequest(deps, context),
): Promise<ClassifiedResponse> {
  let attempts = 0
  const attempt = () => sendAttempt(deps, context, prepare, ++attempts)
  return withCredentialRefresh(deps, context, () => withRetries(deps, context, attempt))
}

async function sendAttempt(
  deps: CallDependencies,
  context: CallContext,
  prepare: () => Promise<AuthorizedRequest>,
  number: number,
  isAnswer = false,
): Promise<AttemptResult<ClassifiedResponse>> {
  const { method } = context.target
  const request = await prepare()
  const permit = await acquirePermit(deps, context)
  if (permit.kind === 'limited') return { outcome: limitedByBudget(permit.retryAfterSeconds) }
  const entry = openLogEntry(deps, context, request, number)
  try {
    const sent = sendHttp(deps, request, context.request, method, entry?.timings)
    const response = await sent.finally(() => permit.release())
    deps.requestLine.logId = entry?.answered(response)
    const result = await classifyResponse(
      deps,
      method,
      await decodeResponse(method, response, { owner: deps.owner, signal: context.request.signal }),
      request.publicUrl,
      hasContent(response),
    )
    deps.callLimiter?.observe(method, context.access, result.outcome)
    entry?.end(result.outcome)
    if (isAnswer || !takeChallenge(context, response)) return result
  } catch (error) {
    deps.requestLine.logId = entry?.fail(error)
    throw error
  }
  return await sendAttempt(deps, context, prepare, number, true)
}

/** Keeps the challenge of a 401 that the authorization answers. @returns whether there is one: the request is sent once more */
export function takeChallenge(
  context: CallContext,
  { status, headers }: Pick<EgressResponse, 'status' | 'headers'>,
): boolean {
  const { 'www-authenticate': header } = headers
  const isTaken =
    status === 401 && header !== undefined && context.target.method.authorize.answersChallenge?.(header) === true
  if (isTaken) context.challenge = { header, count: 0 }
  return isTaken
}

/** Builds and authorizes one request. @param page parameters of a page of a list */
export async function prepareRequest(
  deps: CallDependencies,
  context: CallContext,
  page?: PageParams,
): Promise<AuthorizedRequest> {
  deps.requestLine.planned(context.target)
  const scope = templateScope(context, page?.values)
  const { challenge: last } = context
  if (last !== undefined) context.challenge = { ...last, count: last.count + 1 }
  const authorization = { ...formatContext(deps, 'authorization'), challenge: context.challenge }
  const built = buildRequest(context.target, context.request, scope, page, authorization.nonce)
  deps.requestLine.built(built)
  return await authorizeRequest(context.target.method, built, scope, authorization, deps.redaction)
}

/** The permit without a limiter. */
const UNLIMITED: CallPermit = { kind: 'granted', release: async () => {} }
const TOO_MANY_REQUESTS = 429

/** Takes one request from the limits of the definition. */
export function acquirePermit(
  { callLimiter }: CallDependencies,
  { target, access, request }: CallContext,
): CallPermit | Promise<CallPermit> {
  return callLimiter === undefined ? UNLIMITED : callLimiter.acquire(target.method, access, request.signal)
}

/** The outcome of a request that was not sent because a limit of the definition is reached. */
export function limitedByBudget(retryAfterSeconds: number): RateLimitedOutcome {
  return {
    kind: 'rate_limited',
    limitedBy: 'budget',
    status: TOO_MANY_REQUESTS,
    retryAfterSeconds,
    rateLimit: undefined,
    body: null,
  }
}

/** Redirects that are followed: APIs send them for renamed objects. */
const REDIRECTS_MAX = 3

/**
 * Sends through the guarded client. Redirects are followed for GET and HEAD only, without credentials across origins; for any
 * other method the redirect is the response, so that no write is repeated at another address.
 *
 * @param defaults of the call's own limits
 * @throws Failure EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED
 */
async function sendHttp(
  { http, owner, reserveAnswerBytes }: Pick<CallDependencies, 'http' | 'owner' | 'reserveAnswerBytes'>,
  { method, url, headers, body }: AuthorizedRequest,
  { limits, signal }: Pick<ProxyRequest, 'limits' | 'signal'>,
  defaults: Pick<MethodPlan, 'timeoutMs' | 'responseBytesMax'>,
  timings: RequestTimings | undefined,
): Promise<EgressResponse> {
  const sent = http.send({
    method,
    url,
    headers,
    owner,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? defaults.timeoutMs,
    redirects: redirectsMaxFor(method),
    maxResponseBytes: limits?.responseBytesMax ?? defaults.responseBytesMax,
    reserveBytes: reserveAnswerBytes,
    ...(timings === undefined ? {} : { timings }),
  })
  try {
    return await sent
  } catch (error) {
    throw withSizeAdvice(error, limits?.responseBytesMax === undefined)
  }
}

const MIB = 1024 * 1024

/** Says of an answer that is too large what helps. @param isSetting the limit is the definition's */
function withSizeAdvice(error: unknown, isSetting: boolean): unknown {
  if (!(error instanceof Failure && error.cause instanceof ResponseTooLargeError)) return error
  const { bytesMax } = error.cause
  const canGrow = isSetting && bytesMax < RESPONSE_BYTES_MAX
  const advice = [
    'ask for less at once (smaller pages, fewer fields)',
    ...(canGrow ? [`allow more with max_response_bytes (at most ${RESPONSE_BYTES_MAX})`] : []),
    'or stream it by /custom or with response_format binary',
  ]
  const size = bytesMax % MIB === 0 ? ` (${bytesMax / MIB} MiB)` : ''
  const { reason, publicMessage, metadata, isPermanent, cause } = error
  return new Failure(reason, `${publicMessage}${size}: ${advice.join(', ')}`, { metadata, isPermanent, cause })
}

export function redirectsMaxFor(method: string): number {
  return method === 'GET' || method === 'HEAD' ? REDIRECTS_MAX : 0
}
