import { type BackoffPolicy, backoffMs, type Clock, Failure, type FailureReason, type Random } from '../base/index.ts'
import { type EgressStreamResponse, type HttpClient, isTransientStatus, parseRetryAfter } from '../egress/index.ts'
import type { OutboundMessage } from './envelope.ts'
import { type DeliveryRequest, signRequest, type WebhookTarget } from './request.ts'

/** What sending deliveries takes. */
export interface DeliverDeps {
  readonly http: Pick<HttpClient, 'stream'>
  readonly clock: Clock
  readonly random: Random
}

/** The outcome of one delivery attempt. */
export type DeliveryAttempt =
  | { readonly kind: 'accepted'; readonly status: number }
  | {
      readonly kind: 'rejected'
      readonly status: number
      /** The beginning of the response body, for the delivery log. */
      readonly responseText: string
      /** From `Retry-After`; absent without a valid one. */
      readonly retryAfterMs: number | undefined
    }
  /** The address is not allowed, the connection failed, the time ran out, or the response was not HTTP. */
  | { readonly kind: 'no_response'; readonly reason: FailureReason; readonly message: string }

/** The outcome of a delivery: its last attempt, and how many were made. */
export type DeliveryResult = DeliveryAttempt & { readonly attempts: number }

/** In-process retries for short failures of the receiver; the caller retries longer ones through the queue. */
const RETRY_BACKOFF: BackoffPolicy = { baseMs: 500, factor: 3, maxMs: 10_000, jitterFloor: 0.5 }
const ATTEMPTS_MAX = 4
/** A longer `Retry-After` ends the delivery: waiting for it is the caller's. */
const RETRY_AFTER_MAX_MS = 10_000

/** From connecting to the end of the response. */
const ATTEMPT_TIMEOUT_MS = 15_000
/** Bytes of a response that are read; the connection of a longer one is closed there. */
const RESPONSE_TEXT_BYTES_MAX = 16 * 1024
/** The client's own limit, which is never reached. */
const RESPONSE_BYTES_MAX = 1024 * 1024

/**
 * Delivers a message: sends it until it is accepted or permanently rejected, at most `ATTEMPTS_MAX` times within about 15 s of
 * waiting; `Retry-After` is a lower bound of each wait. Every attempt sends the same bytes under the same id.
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
  return Math.max(retryAfterMs, backoffMs(RETRY_BACKOFF, attempts, random))
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

/** Signs the message with the time of this attempt and sends it once. */
async function attemptDelivery(
  deps: DeliverDeps,
  target: WebhookTarget,
  message: OutboundMessage,
  signal: AbortSignal,
): Promise<DeliveryAttempt> {
  const timestampSeconds = Math.floor(deps.clock.now().getTime() / 1000)
  return await sendDeliveryRequest(deps, target.url, signRequest(target, message, timestampSeconds), signal)
}

/** Sends a request once. Redirects are not followed: a 3xx is a rejection. @throws the signal's reason when it aborts */
export async function sendDeliveryRequest(
  { http, clock }: Pick<DeliverDeps, 'http' | 'clock'>,
  url: string,
  { headers: requestHeaders, body }: DeliveryRequest,
  signal: AbortSignal,
): Promise<DeliveryAttempt> {
  try {
    const response = await http.stream({
      method: 'POST',
      url,
      headers: requestHeaders,
      body,
      signal,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxResponseBytes: RESPONSE_BYTES_MAX,
    })
    const { status, headers } = response
    const responseText = await readBeginning(response)
    if (status >= 200 && status < 300) return { kind: 'accepted', status }
    const retryAfterSeconds = parseRetryAfter(headers['retry-after'], clock.now())
    const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000
    return { kind: 'rejected', status, responseText, retryAfterMs }
  } catch (error) {
    if (signal.aborted || !(error instanceof Failure)) throw error
    return { kind: 'no_response', reason: error.reason, message: error.publicMessage }
  }
}

/** The beginning of the body as text. A body that breaks off does not change that the receiver answered. */
async function readBeginning({ body }: EgressStreamResponse): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of body) {
      chunks.push(chunk.subarray(0, RESPONSE_TEXT_BYTES_MAX - bytes))
      bytes += chunk.byteLength
      if (bytes >= RESPONSE_TEXT_BYTES_MAX) break
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
  }
  return Buffer.concat(chunks).toString('utf8')
}
