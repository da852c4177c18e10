import type { Failure, Json } from '../base/index.ts'
import type { StopReason, StopRule } from '../formats/index.ts'
import type { CallOutcome } from './outcome.ts'

/** A request as it would be sent, secrets masked. */
export interface SentRequest {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

/** A call that was thought through; nothing was sent. Every secret in it is `***`. */
export interface RequestPreview extends SentRequest {
  /** Changes something upstream; refused for sandbox accounts. */
  readonly isWrite: boolean
  /** Why the call would be refused instead of sent; absent when it would be sent. */
  readonly error: Failure | undefined
  /** Requests in all when the upstream fails in a way that passes. */
  readonly attemptsMax: number
  /** Present for lists. */
  readonly paging: PagingPreview | undefined
  /** What the sample would come to; absent where there is none. */
  readonly outcome: SampleOutcome | undefined
}

/** How a list is paged and why it would end. */
export interface PagingPreview {
  /** `null`: the list is one page. */
  readonly format: string | null
  /** The page size that is asked for. */
  readonly limit: number | undefined
  /** In the order in which they are evaluated. */
  readonly stops: readonly StopRule[]
}

/** What an answer would come to. */
export interface SampleOutcome {
  readonly kind: CallOutcome['kind']
  /**
   * What `response_path` selects, of a list the records; of an error `{status, message, metadata, action, result?,
   * headers?}`, of a rate limit `{status, retry_after}`.
   */
  readonly result: Json
  /** The following are present for a page of a list: its records, and either why it is the last or how the next is asked for. */
  readonly recordCount?: number | undefined
  readonly stopReason?: StopReason | undefined
  readonly next?: SentRequest | undefined
}
