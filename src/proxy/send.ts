import type { EgressResponse, HttpClient } from '../egress/index.ts'
import type { PageParams } from '../formats/index.ts'
import { type AuthorizedRequest, authorizeRequest, buildRequest } from './build-request.ts'
import { type CallContext, formatContext, templateScope } from './call-context.ts'
import { classifyResponse } from './classify-response.ts'
import { withCredentialRefresh } from './credential-refresh.ts'
import { decodeResponse } from './decode-response.ts'
import type { CallDependencies, CallPermit } from './dependencies.ts'
import { type AttemptResult, type ClassifiedResponse, type RateLimitedOutcome, withoutRetryHint } from './outcome.ts'
import { type ProxyRequest, RESPONSE_BYTES_MAX } from './request.ts'
import { withRetries } from './retry.ts'

/** Sends one request: again where the definition allows it, once more with renewed credentials. @throws Failure of any stage */
export function sendWithRetries(
  deps: CallDependencies,
  job: CallContext,
  page?: PageParams,
): Promise<ClassifiedResponse> {
  return withCredentialRefresh(deps, job, () => withRetries(deps, job, () => sendAttempt(deps, job, page)))
}

/** The stages of one request, in order. */
async function sendAttempt(
  deps: CallDependencies,
  job: CallContext,
  page: PageParams | undefined,
): Promise<AttemptResult<ClassifiedResponse>> {
  const { method } = job.target
  const ready = await prepareRequest(deps, job, page)
  const grant = await acquirePermit(deps, job)
  if (grant.kind === 'limited') return withoutRetryHint(limitedByBudget(grant.retryAfterSeconds))
  const answered = await sendHttp(deps.http, ready, job.request, method.timeoutMs).finally(() => grant.release())
  const attempted = await classifyResponse(deps, method, await decodeResponse(method, answered), ready.publicUrl)
  deps.budgets?.observe(method, job.access, attempted.outcome)
  return attempted
}

/** Builds and authorises. */
export function prepareRequest(
  deps: CallDependencies,
  job: CallContext,
  page: PageParams | undefined,
): Promise<AuthorizedRequest> {
  const scope = templateScope(job, page?.values)
  const tools = formatContext(deps, 'authorization')
  const built = buildRequest(job.target, job.request, scope, page, tools.nonce)
  return authorizeRequest(job.target.method, built, scope, tools, deps.redaction)
}

/** Nobody shares limits: nothing is held back and nothing is to be given back. */
const UNLIMITED: CallPermit = { kind: 'granted', release: async () => {} }
const TOO_MANY_REQUESTS = 429

/** Stage 4: takes one request from the budgets that the definition sets. */
export function acquirePermit({ budgets }: CallDependencies, job: CallContext): CallPermit | Promise<CallPermit> {
  return budgets === undefined ? UNLIMITED : budgets.acquire(job.target.method, job.access, job.request.signal)
}

/** The outcome of a request that was not sent because a budget is used up. */
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

/** Redirects of a reading request that are followed: APIs answer them for what was renamed. */
const REDIRECTS_MAX = 3

/**
 * Stage 5: sends through the guarded client.
 *
 * Redirects are followed for GET and HEAD only, credentials left behind where they change the origin. Any other method is
 * answered the redirect itself: repeating a write elsewhere is not ours to decide.
 *
 * @param timeoutMs unless the call has a limit of its own
 * @throws Failure EGRESS_BLOCKED, UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED
 */
function sendHttp(
  http: Pick<HttpClient, 'send'>,
  { method, url, headers, body }: AuthorizedRequest,
  { limits, signal }: Pick<ProxyRequest, 'limits' | 'signal'>,
  timeoutMs: number,
): Promise<EgressResponse> {
  return http.send({
    method,
    url,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    timeoutMs: limits?.timeoutMs ?? timeoutMs,
    redirects: redirectsMaxFor(method),
    maxResponseBytes: limits?.responseBytesMax ?? RESPONSE_BYTES_MAX,
  })
}

/** How many redirects of a request are followed. */
export function redirectsMaxFor(method: string): number {
  return method === 'GET' || method === 'HEAD' ? REDIRECTS_MAX : 0
}
