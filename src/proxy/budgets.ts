import type { MethodPlan } from '../definition/index.ts'
import type { RateLimitInfo } from './outcome.ts'
import type { AccountAccess } from './request.ts'

/** Shared limits in front of sending: the definition's `budget` and `concurrency`. Without them nothing is held back. */
export interface CallLimiter {
  /** Takes one request from every budget that applies. */
  acquire(method: MethodPlan, access: AccountAccess, signal?: AbortSignal): Promise<CallPermit>
  /** Tells what an answer said about the upstream's own limits; costs the call no time. */
  observe(method: MethodPlan, access: AccountAccess, answer: RateLimitHints): void
}

/** What an answer tells about limits. */
interface RateLimitHints {
  readonly rateLimit: RateLimitInfo | undefined
  /** The upstream asked to wait. */
  readonly retryAfterSeconds?: number
}

/** `release` is called once, when the answer is there or will not come; it never rejects. */
export type CallPermit =
  | { readonly kind: 'granted'; release(): Promise<void> }
  | { readonly kind: 'limited'; readonly retryAfterSeconds: number }
