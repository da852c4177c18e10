import type { DecodedResponse } from './decode.ts'
import type { RateLimitedOutcome, RateLimitInfo, StreamedResponse, UpstreamErrorOutcome } from './outcome.ts'

/** What one request came to, before its result is taken out. */
export type ClassifiedResponse = ClassifiedSuccess | RateLimitedOutcome | UpstreamErrorOutcome

export interface ClassifiedSuccess {
  readonly kind: 'success'
  readonly response: DecodedResponse
  readonly rateLimit: RateLimitInfo | undefined
  /** What was requested, without authorization parameters. */
  readonly url: string
  /** The status says that the list is over; there is nothing to take out. */
  readonly isPastEnd: boolean
}

/** Either way of answering: read to the end, or while it arrives. */
export type ClassifiedOutcome = ClassifiedResponse | StreamedResponse

/** What an attempt came to, and how long the upstream asked to wait before another. */
export interface AttemptResult<A extends ClassifiedOutcome = ClassifiedResponse> {
  readonly outcome: A
  readonly retryAfterSeconds: number | undefined
}

/** An answer after which there is nothing to repeat. */
export function withoutRetryHint<A extends ClassifiedOutcome>(answer: A): AttemptResult<A> {
  return { outcome: answer, retryAfterSeconds: undefined }
}
