import { type BackoffPolicy, backoffMs, type Clock } from '../../base/index.ts'
import { type AttemptDeps, attemptDelivery, type DeliveryAttempt } from './attempt.ts'
import type { OutboundMessage, WebhookTarget } from './envelope.ts'

/** What a delivery needs. */
export interface DeliverDeps extends AttemptDeps {
  readonly clock: Clock
  /** A number in [0, 1); spreads the attempts of many senders. */
  readonly random: () => number
}

/** How a delivery ended, and after how many attempts. */
export type DeliveryResult = DeliveryAttempt & { readonly attempts: number }

/** A hiccup of the receiver is bridged without giving up the caller's place; an outage is the caller's to wait out. */
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 500, factor: 3, maxMs: 10_000, jitterFloor: 0.5 }
const ATTEMPTS_MAX = 4
/** A `Retry-After` beyond this is not slept through here. */
const RETRY_AFTER_MAX_MS = 10_000
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/**
 * Sends the message until it is accepted or refused for good, at most `QUICK_ATTEMPTS_MAX` times within about 15 s of
 * waiting; `Retry-After` is a lower bound of each wait.
 *
 * The result is the last attempt. Every attempt sends the same bytes under the same id.
 *
 * @throws Failure CANCELLED, or the signal's reason, when `signal` aborts
 */
export async function deliver(
  deps: DeliverDeps,
  target: WebhookTarget,
  message: OutboundMessage,
  signal: AbortSignal,
): Promise<DeliveryResult> {
  for (let attempts = 1; ; attempts++) {
    const attempt = await attemptDelivery(deps, target, message, signal)
    const waitMs = retryDelayMs(attempt, attempts, deps.random)
    if (waitMs === undefined) return { ...attempt, attempts }
    await deps.clock.sleep(waitMs, signal)
    signal.throwIfAborted()
  }
}

/** The pause before another attempt, `undefined` when none is made. */
function retryDelayMs(attempt: DeliveryAttempt, attempts: number, random: () => number): number | undefined {
  if (attempts === ATTEMPTS_MAX || !isRetryable(attempt)) return undefined
  const asked = attempt.kind === 'refused' ? (attempt.retryAfterMs ?? 0) : 0
  if (asked > RETRY_AFTER_MAX_MS) return undefined
  return Math.max(asked, backoffMs(RETRY_BACKOFF, attempts, random))
}

/** Tells whether the same bytes may be welcome in a moment. */
function isRetryable(attempt: DeliveryAttempt): boolean {
  switch (attempt.kind) {
    case 'accepted':
      return false
    case 'refused':
      return RETRYABLE_STATUSES.has(attempt.status)
    case 'unanswered':
      return attempt.reason !== 'EGRESS_BLOCKED'
  }
}
