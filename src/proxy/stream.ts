import type { Plan } from '../definition/index.ts'
import type { EgressStreamResponse, HttpClient } from '../egress/index.ts'
import { type AttemptResult, withoutRetryHint } from './answer.ts'
import type { AuthorizedRequest } from './authorise.ts'
import { acquirePermit, limitedByBudget } from './budget-stage.ts'
import type { CallDependencies } from './dependencies.ts'
import { redirectsMaxFor } from './exchange.ts'
import { type CallContext, createCallContext } from './job.ts'
import { classifyStreamedResponse } from './judge-open-answer.ts'
import { withCredentialRefresh } from './keep-authorised.ts'
import type { StreamOutcome } from './outcome.ts'
import { prepareRequest } from './perform.ts'
import { type AccountAccess, STREAM_BYTES_MAX, STREAM_TIMEOUT_MS, type StreamRequest } from './request.ts'
import { withRetries } from './retry.ts'

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
