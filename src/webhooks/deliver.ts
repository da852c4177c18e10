import { type BackoffPolicy, backoffMs, type Clock, Failure, type FailureReason } from '../base/index.ts'
import { type EgressStreamResponse, type HttpClient, isTransientStatus, parseRetryAfter } from '../egress/index.ts'
import type { OutboundMessage, WebhookTarget } from './events.ts'
import { signatureHeaders } from './signing.ts'

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
      return isTransientStatus(attempt.status)
    case 'unanswered':
      return attempt.reason !== 'EGRESS_BLOCKED'
  }
}

/** Time one attempt may take, connecting and reading included. */
const ATTEMPT_TIMEOUT_MS = 15_000
/** Bytes of an answer that are read; a longer one is cut off there and its connection closed. */
const RESPONSE_TEXT_BYTES_MAX = 16 * 1024
/** A bound for the client, far above what is read. */
const RESPONSE_BYTES_MAX = 1024 * 1024

/** What an attempt needs. */
interface AttemptDeps {
  readonly http: Pick<HttpClient, 'stream'>
  readonly clock: Clock
}

/** How one attempt ended. */
export type DeliveryAttempt =
  | { readonly kind: 'accepted'; readonly status: number }
  | {
      readonly kind: 'refused'
      readonly status: number
      /** The beginning of the answer, for the delivery log. */
      readonly answer: string
      /** What `Retry-After` asked for; absent when it was not sent or made no sense. */
      readonly retryAfterMs: number | undefined
    }
  /** No answer: the address is not allowed, nobody listens, the time ran out, what came was not HTTP. */
  | { readonly kind: 'unanswered'; readonly reason: FailureReason; readonly message: string }

/**
 * Signs the message with the time of this attempt and sends it once. Redirects are not followed: a 3xx is a refusal.
 *
 * @throws Failure CANCELLED when `signal` aborts
 */
async function attemptDelivery(
  deps: AttemptDeps,
  target: WebhookTarget,
  message: OutboundMessage,
  signal: AbortSignal,
): Promise<DeliveryAttempt> {
  const timestampSeconds = Math.floor(deps.clock.now().getTime() / 1000)
  try {
    const response = await deps.http.stream({
      method: 'POST',
      url: target.url,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Patchbay-Webhooks/1',
        // Answers are kept as text as they arrive.
        'accept-encoding': 'identity',
        ...signatureHeaders({ ...message, timestampSeconds }, target.secrets),
      },
      body: message.body,
      signal,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxResponseBytes: RESPONSE_BYTES_MAX,
    })
    return await attemptFromResponse(response, deps.clock)
  } catch (error) {
    if (signal.aborted || !(error instanceof Failure)) throw error
    return { kind: 'unanswered', reason: error.reason, message: error.publicMessage }
  }
}

async function attemptFromResponse(response: EgressStreamResponse, clock: Clock): Promise<DeliveryAttempt> {
  const { status, headers } = response
  const answer = await readBeginning(response)
  if (status >= 200 && status < 300) return { kind: 'accepted', status }
  const retryAfterSeconds = parseRetryAfter(headers['retry-after'], clock.now())
  const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000
  return { kind: 'refused', status, answer, retryAfterMs }
}

/** Reads up to `ANSWER_BYTES_MAX`. The status has decided already, so an answer that breaks off is as good as a whole one. */
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
