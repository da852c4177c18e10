import type { CallPermit } from './budgets.ts'
import type { CallDependencies } from './dependencies.ts'
import type { CallContext } from './job.ts'
import type { RateLimitedOutcome } from './outcome.ts'

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
