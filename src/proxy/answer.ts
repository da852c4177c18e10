import type { DecodedResponse } from './decode.ts'
import type { RateLimitedOutcome, RateLimitInfo, StreamedAnswer, UpstreamErrorOutcome } from './outcome.ts'

/** What one request came to, before its result is taken out. */
export type Answer = Success | RateLimitedOutcome | UpstreamErrorOutcome

export interface Success {
  readonly kind: 'success'
  readonly response: DecodedResponse
  readonly rateLimit: RateLimitInfo | undefined
  /** What was requested, without authorization parameters. */
  readonly url: string
  /** The status says that the list is over; there is nothing to take out. */
  readonly isPastEnd: boolean
}

/** Either way of answering: read to the end, or while it arrives. */
export type AnyAnswer = Answer | StreamedAnswer

/** What an attempt came to, and how long the upstream asked to wait before another. */
export interface Attempt<A extends AnyAnswer = Answer> {
  readonly answer: A
  readonly retryAfterSeconds: number | undefined
}

/** An answer after which there is nothing to repeat. */
export function final<A extends AnyAnswer>(answer: A): Attempt<A> {
  return { answer, retryAfterSeconds: undefined }
}
