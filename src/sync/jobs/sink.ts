import type { RecordsPage } from '../../engine/proxy/index.ts'
import type { ResourceStats, RunEnding, RunError, RunOutcome } from '../runs/run.ts'

/**
 * The destination of a run: a webhook, or a daemon's store. Calls are made one at a time, and the checkpoint moves only when
 * the sink has accepted: a slow sink is backpressure for the run.
 *
 * Delivery is at least once. A repeated call has the same sequence numbers: deduplicate by run and sequence.
 */
export interface Sink {
  /** Before anything else, once per run. */
  started(): Promise<SinkResult>
  page(page: SinkPage): Promise<SinkResult>
  /** A listing ended with an error and the run continues (`error_handling: ignore`). */
  listingError(listingError: SinkListingError): Promise<SinkResult>
  /** The run has ended. A repeated call has the same ending. Absent: the destination gets no such event. */
  ended?(ending: RunEnding, stats: readonly ResourceStats[]): Promise<SinkResult>
}

/** What every delivery says of itself. */
interface DeliveryHead {
  readonly resource: string
  readonly method: string
  /** The first sequence number of the delivery; it uses as many as it needs. */
  readonly sequence: number
}

/** One page of a listing. */
export interface SinkPage extends DeliveryHead {
  readonly page: Pick<RecordsPage, 'records' | 'state'>
  /** Errors that are delivered with the page (`error_handling: batch`). */
  readonly errors: readonly RunError[]
}

/** An error that ended one listing. */
interface SinkListingError extends DeliveryHead {
  readonly error: RunError
}

/** `accepted` with the count of sequence numbers used, or the outcome that ends the run. */
export type SinkResult = { readonly kind: 'accepted'; readonly sequences: number } | DestinationUnavailable | RunOutcome

/** The destination accepts nothing at the moment: the run is postponed and delivers the same again. */
export interface DestinationUnavailable {
  readonly kind: 'unavailable'
  readonly error: RunError
  /** The least that the destination asked to wait. */
  readonly afterMs?: number
}
