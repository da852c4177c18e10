import type { AttemptOutcome } from './delivery.ts'
import { isAccepted } from './delivery.ts'

/** What a provider does to a receiver that fails. Times in milliseconds of the double. */
export type HealthPolicy =
  | { readonly kind: 'none' }
  /** Shopify: one delivery that fails so often in a row, its retries included, deletes the subscription. */
  | { readonly kind: 'exhausted'; readonly failures: number }
  /** Slack: a share of failures within a window disables the address, once there were enough attempts. */
  | { readonly kind: 'share'; readonly share: number; readonly windowMs: number; readonly attemptsMin: number }
  /** Asana: failures for so long delete the subscription. */
  | { readonly kind: 'duration'; readonly failingMs: number }
  /** Microsoft Graph: too many slow answers, and notifications are dropped for a while. */
  | {
      readonly kind: 'slow'
      readonly slowMs: number
      readonly dropShare: number
      readonly windowMs: number
      readonly attemptsMin: number
    }

/** What the provider has decided about a receiver. */
export type Verdict = 'healthy' | 'disabled' | 'dropping'

/** Watches the attempts of one subscription as its provider does. */
export class ReceiverHealth {
  readonly #policy: HealthPolicy
  #attempts: { readonly at: number; readonly isBad: boolean }[] = []
  #failingSince: number | undefined

  constructor(policy: HealthPolicy) {
    this.#policy = policy
  }

  /** The verdict after one more attempt. @param failures of this delivery in a row, this attempt included */
  note(outcome: AttemptOutcome, failures: number, now = Date.now()): Verdict {
    const isFailed = !isAccepted(outcome)
    const policy = this.#policy
    this.#failingSince = isFailed ? (this.#failingSince ?? now) : undefined
    switch (policy.kind) {
      case 'none':
        return 'healthy'
      case 'exhausted':
        return failures >= policy.failures ? 'disabled' : 'healthy'
      case 'duration':
        return this.#failingSince !== undefined && now - this.#failingSince >= policy.failingMs ? 'disabled' : 'healthy'
      case 'share':
        return this.#badShare(isFailed, policy, now) > policy.share ? 'disabled' : 'healthy'
      case 'slow': {
        const isSlow = isFailed || outcome.tookMs > policy.slowMs
        return this.#badShare(isSlow, policy, now) > policy.dropShare ? 'dropping' : 'healthy'
      }
    }
  }

  #badShare(isBad: boolean, { windowMs, attemptsMin }: { windowMs: number; attemptsMin: number }, now: number): number {
    this.#attempts = [...this.#attempts.filter(({ at }) => now - at < windowMs), { at: now, isBad }]
    if (this.#attempts.length < attemptsMin) return 0
    return this.#attempts.filter((each) => each.isBad).length / this.#attempts.length
  }
}
