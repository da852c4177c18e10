import type { PageParams } from '../formats/index.ts'
import { type AttemptResult, type ClassifiedResponse, withoutRetryHint } from './answer.ts'
import { type AuthorizedRequest, authorizeRequest } from './authorise.ts'
import { acquirePermit, limitedByBudget } from './budget-stage.ts'
import { buildRequest } from './build.ts'
import { decodeResponse } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { sendHttp } from './exchange.ts'
import { type CallContext, formatContext, templateScope } from './job.ts'
import { classifyResponse } from './judge-answer.ts'
import { withCredentialRefresh } from './keep-authorised.ts'
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
