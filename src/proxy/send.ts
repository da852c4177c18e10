import type { EgressResponse, RequestTimings } from '../egress/index.ts'
import type { PageParams } from '../formats/index.ts'
import { type AuthorizedRequest, authorizeRequest, buildRequest } from './build-request.ts'
import { type CallContext, formatContext, templateScope } from './call-context.ts'
import { openLogEntry } from './call-log.ts'
import { classifyResponse } from './classify-response.ts'
import { withCredentialRefresh } from './credential-refresh.ts'
import { decodeResponse, hasContent } from './decode-response.ts'
import type { CallDependencies, CallPermit } from './dependencies.ts'
import type { AttemptResult, ClassifiedResponse, RateLimitedOutcome } from './outcome.ts'
import { type ProxyRequest, RESPONSE_BYTES_MAX } from './request.ts'
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
    const sent = sendHttp(deps, request, context.request, method.timeoutMs, entry?.timings)
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
 * @param timeoutMs default of the call's own limit
 * @throws Failure EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED
 */
function sendHttp(
  { http, owner }: Pick<CallDependencies, 'http' | 'owner'>,
  { method, url, headers, body }: AuthorizedRequest,
  { limits, signal }: Pick<ProxyRequest, 'limits' | 'signal'>,
  timeoutMs: number,
  timings: RequestTimings | undefined,
): Promise<EgressResponse> {
  return http.send({
    method,
    url,
    headers,
    owner,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? timeoutMs,
    redirects: redirectsMaxFor(method),
    maxResponseBytes: limits?.responseBytesMax ?? RESPONSE_BYTES_MAX,
    ...(timings === undefined ? {} : { timings }),
  })
}

export function redirectsMaxFor(method: string): number {
  return method === 'GET' || method === 'HEAD' ? REDIRECTS_MAX : 0
}
