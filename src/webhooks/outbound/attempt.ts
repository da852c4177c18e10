import { type Clock, Failure, type FailureReason } from '../../foundation/base/index.ts'
import {
  classifyRequestFailure,
  type EgressStreamResponse,
  type HttpClient,
  type RequestErrorClass,
  type RequestTimings,
  retryAfterSeconds,
} from '../../foundation/egress/index.ts'
import type { DeliveryRequest, WebhookTarget } from './request.ts'

/** The outcome of one delivery attempt. */
export type DeliveryAttempt =
  | { readonly kind: 'accepted'; readonly status: number }
  | {
      readonly kind: 'rejected'
      readonly status: number
      /** From `Retry-After`; absent without a valid one. */
      readonly retryAfterMs: number | undefined
    }
  /** The address is not allowed, the connection failed, the time ran out, or the response was not HTTP. */
  | { readonly kind: 'no_response'; readonly reason: FailureReason; readonly message: string }

/** What was received. */
interface ReceivedResponse {
  readonly status: number
  /** By lower-case name; without cookies and connection headers. */
  readonly headers: Readonly<Record<string, string>>
  /** The first `RESPONSE_TEXT_BYTES_MAX` of the body, as text. */
  readonly text: string
}

/** What went wrong in an attempt: the class of the status, or why there was none. */
type AttemptErrorClass = 'status_1xx' | 'status_3xx' | 'status_4xx' | 'status_5xx' | RequestErrorClass

/** One attempt, for its record. */
export interface DeliveryExchange {
  readonly attempt: DeliveryAttempt
  readonly startedAt: Date
  /** Until the response was read, or the attempt failed. */
  readonly totalMs: number
  readonly timings: RequestTimings
  readonly response: ReceivedResponse | undefined
  /** Absent when the attempt was accepted. */
  readonly errorClass: AttemptErrorClass | undefined
}

/** From connecting to the end of the response. */
export const ATTEMPT_TIMEOUT_MS = 15_000
/** Bytes of a response that are read; the connection of a longer one is closed there. */
const RESPONSE_TEXT_BYTES_MAX = 16 * 1024
/** The client's own limit, which is never reached. */
const RESPONSE_BYTES_MAX = 1024 * 1024

/**
 * Sends a request once: the one attempt function, of deliveries from the queue and of runs. Redirects are not followed: a 3xx is
 * a rejection.
 *
 * @throws the signal's reason when it aborts
 */
export async function sendDeliveryRequest(
  { http, clock }: { readonly http: Pick<HttpClient, 'stream'>; readonly clock: Clock },
  { url, environmentId }: Pick<WebhookTarget, 'url' | 'environmentId'>,
  { headers, body }: DeliveryRequest,
  signal: AbortSignal,
): Promise<DeliveryExchange> {
  const startedAt = clock.now()
  const startedMs = performance.now()
  const timings: RequestTimings = {}
  try {
    const opened = await http.stream({
      method: 'POST',
      url,
      headers,
      body,
      signal,
      owner: environmentId,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxResponseBytes: RESPONSE_BYTES_MAX,
      timings,
    })
    const response = { status: opened.status, headers: opened.headers, text: await readBeginning(opened) }
    const totalMs = performance.now() - startedMs
    const attempt = attemptFromResponse(response, clock.now())
    const errorClass = attempt.kind === 'accepted' ? undefined : statusClass(response.status)
    return { attempt, startedAt, totalMs, timings, response, errorClass }
  } catch (error) {
    if (signal.aborted || !(error instanceof Failure)) throw error
    const attempt = { kind: 'no_response', reason: error.reason, message: error.publicMessage } as const
    const totalMs = performance.now() - startedMs
    return { attempt, startedAt, totalMs, timings, response: undefined, errorClass: classifyRequestFailure(error) }
  }
}

function attemptFromResponse({ status, headers }: ReceivedResponse, now: Date): DeliveryAttempt {
  if (status >= 200 && status < 300) return { kind: 'accepted', status }
  const seconds = retryAfterSeconds(headers, now)
  return {
    kind: 'rejected',
    status,
    retryAfterMs: seconds === undefined ? undefined : seconds * 1_000,
  }
}

function statusClass(status: number): AttemptErrorClass {
  if (status >= 500) return 'status_5xx'
  if (status >= 400) return 'status_4xx'
  return status >= 300 ? 'status_3xx' : 'status_1xx'
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
