import { type BackoffPolicy, type Clock, hintedWaitMs, type Random } from '../../foundation/base/index.ts'
import { type HttpClient, isTransientStatus } from '../../foundation/egress/index.ts'
import { type DeliveryAttempt, sendDeliveryRequest } from './attempt.ts'
import type { OutboundMessage } from './envelope.ts'
import { signRequest, type WebhookTarget } from './request.ts'

/** What sending deliveries takes. */
export interface DeliverDeps {
  readonly http: Pick<HttpClient, 'stream'>
  readonly clock: Clock
  readonly random: Random
}

/** The outcome of a delivery: its last attempt, and how many were made. */
export type DeliveryResult = DeliveryAttempt & { readonly attempts: number }

/** In-process retries for short failures of the receiver; the caller retries longer ones through the queue. */
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 500, factor: 3, maxMs: 10_000, jitterFloor: 0.5 }
const ATTEMPTS_MAX = 4
/** A longer `Retry-After` ends the delivery: waiting for it is the caller's. */
const RETRY_AFTER_MAX_MS = 10_000

/**
 * Delivers a message: sends it until it is accepted or permanently rejected, at most `ATTEMPTS_MAX` times within about 15 s of
 * waiting; `Retry-After` is a lower bound of each wait. Every attempt sends the same bytes under the same id.
 *
 * @param findSecrets the secrets that are valid at the moment of an attempt; default: those of the target
 * @throws Failure CANCELLED, or the signal's reason, when `signal` aborts
 */
export async function deliver(
  deps: DeliverDeps,
  target: WebhookTarget,
  message: OutboundMessage,
  signal: AbortSignal,
  findSecrets = async (): Promise<readonly string[]> => target.secrets,
): Promise<DeliveryResult> {
  for (let attempts = 1; ; attempts++) {
    const signer = { ...target, secrets: await findSecrets() }
    const request = signRequest(signer, message, Math.floor(deps.clock.now().getTime() / 1000))
    const { attempt } = await sendDeliveryRequest(deps, target, request, signal)
    const delayMs = retryDelayMs(attempt, attempts, deps.random)
    if (delayMs === undefined) return { ...attempt, attempts }
    await deps.clock.sleep(delayMs, signal)
    signal.throwIfAborted()
  }
}

/** The delay before the next attempt, `undefined` when none is made. */
function retryDelayMs(attempt: DeliveryAttempt, attempts: number, random: Random): number | undefined {
  if (attempts === ATTEMPTS_MAX || !isRetryable(attempt)) return undefined
  const retryAfterMs = attempt.kind === 'rejected' ? (attempt.retryAfterMs ?? 0) : 0
  if (retryAfterMs > RETRY_AFTER_MAX_MS) return undefined
  return hintedWaitMs(RETRY_BACKOFF, attempts, retryAfterMs, random)
}

function isRetryable(attempt: DeliveryAttempt): boolean {
  switch (attempt.kind) {
    case 'accepted':
      return false
    case 'rejected':
      return isTransientStatus(attempt.status)
    case 'no_response':
      return attempt.reason !== 'EGRESS_BLOCKED'
  }
}
