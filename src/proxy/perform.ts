import type { PageRequest } from '../formats/index.ts'
import { type Answer, type Attempt, final } from './answer.ts'
import { type AuthorisedRequest, authorise } from './authorise.ts'
import { budgetExhausted, takeBudget } from './budget-stage.ts'
import { buildRequest } from './build.ts'
import { decode } from './decode.ts'
import type { CallDependencies } from './dependencies.ts'
import { exchange } from './exchange.ts'
import { type Job, scopeOf, toolsOf } from './job.ts'
import { judgeAnswer } from './judge-answer.ts'
import { keepAuthorised } from './keep-authorised.ts'
import { withRetries } from './retry.ts'

/** Sends one request: again where the definition allows it, once more with renewed credentials. @throws Failure of any stage */
export function perform(deps: CallDependencies, job: Job, page?: PageRequest): Promise<Answer> {
  return keepAuthorised(deps, job, () => withRetries(deps, job, () => attempt(deps, job, page)))
}

/** The stages of one request, in order. */
async function attempt(deps: CallDependencies, job: Job, page: PageRequest | undefined): Promise<Attempt<Answer>> {
  const { method } = job.target
  const ready = await prepare(deps, job, page)
  const grant = await takeBudget(deps, job)
  if (grant.kind === 'limited') return final(budgetExhausted(grant.retryAfterSeconds))
  const answered = await exchange(deps.http, ready, job.request, method.timeoutMs).finally(() => grant.release())
  const attempted = await judgeAnswer(deps, method, await decode(method, answered), ready.publicUrl)
  deps.budgets?.learn(method, job.access, attempted.answer)
  return attempted
}

/** Builds and authorises. */
export function prepare(deps: CallDependencies, job: Job, page: PageRequest | undefined): Promise<AuthorisedRequest> {
  const scope = scopeOf(job, page?.values)
  const tools = toolsOf(deps, 'authorization')
  const built = buildRequest(job.target, job.request, scope, page, tools.nonce)
  return authorise(job.target.method, built, scope, tools, deps.redaction)
}
