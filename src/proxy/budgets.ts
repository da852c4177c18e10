import type { MethodPlan } from '../definition/index.ts'
import type { RateLimitInfo } from './outcome.ts'
import type { AccountAccess } from './request.ts'

/** Shared limits in front of sending: the definition's `budget` and `concurrency`. Without them nothing is held back. */
export interface Budgets {
  /** Takes one request from every budget that applies. */
  acquire(method: MethodPlan, access: AccountAccess, signal?: AbortSignal): Promise<BudgetGrant>
  /** Tells what an answer said about the upstream's own limits; costs the call no time. */
  learn(method: MethodPlan, access: AccountAccess, answer: LimitSigns): void
}

/** What an answer tells about limits. */
interface LimitSigns {
  readonly rateLimit: RateLimitInfo | undefined
  /** The upstream asked to wait. */
  readonly retryAfterSeconds?: number
}

/** `release` is called once, when the answer is there or will not come; it never rejects. */
export type BudgetGrant =
  | { readonly kind: 'granted'; release(): Promise<void> }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }
