import type { Json } from '../base/index.ts'
import type { DecidedEnding, ResourceStats, RunError } from '../runs/index.ts'
import type { EarlyEnd } from './listing.ts'

/**
 * Where a run delivers to: a webhook, or a daemon's store. One call at a time, and nothing is forgotten before the sink
 * has answered, so a slow sink slows the run.
 *
 * Calls may repeat after a crash or a retry, always with the same sequence numbers: at least once, dedupe by run and
 * sequence.
 */
export interface Sink {
  /** Before anything else, once per run. */
  started(): Promise<SinkResult>
  page(page: SinkPage): Promise<SinkResult>
  /** A listing failed and the run goes on (`error_handling: ignore`). */
  listingError(problem: SinkListingError): Promise<SinkResult>
  /** The run is over. Called again only with the same ending. Absent: nothing is told. */
  ended?(ending: DecidedEnding, stats: readonly ResourceStats[]): Promise<SinkResult>
}

/** One page of records, or the error that stands in its place. */
export interface SinkPage {
  readonly resource: string
  readonly method: string
  /** The first number this page may use; it takes as many as it needs. */
  readonly sequence: number
  readonly records: readonly Json[]
  /** Errors that are delivered with the page (`error_handling: batch`). */
  readonly errors: readonly RunError[]
  /** The listing this page belongs to may have more. The end of the run is told by `completed` alone. */
  readonly hasMore: boolean
}

/** An error that ended one listing. */
export interface SinkListingError {
  readonly resource: string
  readonly method: string
  readonly sequence: number
  readonly error: RunError
}

/** `accepted` with the count of sequence numbers used, or how the run ends here. */
export type SinkResult =
  | { readonly kind: 'accepted'; readonly sequences: number }
  | { readonly kind: 'end'; readonly outcome: EarlyEnd }
  | DestinationUnavailable

/** Nobody is there to take anything: the run waits and offers the same again. */
export interface DestinationUnavailable {
  readonly kind: 'away'
  readonly error: RunError
  /** The least that the destination asked to wait. */
  readonly afterMs?: number
}
