import type { Plan } from '../definition/index.ts'
import type { HttpClient, HttpStreamResponse } from '../egress/index.ts'
import { type Attempt, final } from './answer.ts'
import type { AuthorisedRequest } from './authorise.ts'
import { budgetExhausted, takeBudget } from './budget-stage.ts'
import type { CallDependencies } from './dependencies.ts'
import { redirectsMax } from './exchange.ts'
import { type Job, startJob } from './job.ts'
import { judgeOpenAnswer } from './judge-open-answer.ts'
import { keepAuthorised } from './keep-authorised.ts'
import type { StreamOutcome } from './outcome.ts'
import { prepare } from './perform.ts'
import { type AccountAccess, STREAM_BYTES_MAX, STREAM_TIMEOUT_MS, type StreamRequest } from './request.ts'
import { withRetries } from './retry.ts'

/**
 * One call whose bodies pass through: the stages of `call`, but the answer is handed on as soon as its head is there.
 *
 * Errors and rate limits are still told from successes; see `judgeOpenAnswer`. A list is asked for as its method stands,
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
  const job = bodyStream === undefined ? startJob(plan, account, request) : startUpload(plan, account, request)
  const ask = () => withRetries(deps, job, () => attempt(deps, job, bodyStream))
  return keepAuthorised(deps, job, ask, bodyStream === undefined)
}

/** The body is not the definition's to write, and nothing can be repeated. */
function startUpload(plan: Plan, account: AccountAccess, request: StreamRequest): Job {
  const once = { ...request, body: undefined, limits: { ...request.limits, attemptsMax: 1 } }
  const { target, ...job } = startJob(plan, account, once)
  return { ...job, target: { ...target, method: { ...target.method, body: undefined } } }
}

async function attempt(
  deps: CallDependencies,
  job: Job,
  bodyStream: StreamRequest['bodyStream'],
): Promise<Attempt<StreamOutcome>> {
  const { method } = job.target
  const ready = await prepare(deps, job, undefined)
  const grant = await takeBudget(deps, job)
  if (grant.kind === 'limited') return final(budgetExhausted(grant.retryAfterSeconds))
  const opened = await open(deps.http, ready, job.request, bodyStream, method.timeoutMs).catch(
    async (error: unknown) => {
      await grant.release()
      throw error
    },
  )
  opened.body.once('close', () => void grant.release())
  const attempted = await judgeOpenAnswer(deps, method, opened, ready.publicUrl).catch((error: unknown) => {
    opened.body.destroy()
    throw error
  })
  deps.budgets?.learn(method, job.access, attempted.answer)
  return attempted
}

/** Sends; only encodings that the caller can read are asked for, because the bytes are handed on as they come. */
function open(
  http: Pick<HttpClient, 'stream'>,
  { method, url, headers, body }: AuthorisedRequest,
  { limits, signal }: Job['request'],
  bodyStream: StreamRequest['bodyStream'],
  idleTimeoutMs: number,
): Promise<HttpStreamResponse> {
  const bodyBytes = bodyStream === undefined ? undefined : announcedBytes(headers)
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
    redirects: redirectsMax(method),
    maxResponseBytes: limits?.responseBytesMax ?? STREAM_BYTES_MAX,
  })
}

function announcedBytes({ 'content-length': length = '' }: AuthorisedRequest['headers']): number | undefined {
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}
