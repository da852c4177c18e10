import type { Json } from '../../base/index.ts'

/** Records of one event at most. */
const BATCH_RECORDS_MAX = 500
/** Bytes of the records in one event; the rest of the body stays below 4 KiB, so that bodies stay below 256 KiB. */
const BATCH_BYTES_MAX = 252 * 1024

/** Records of one event, as JSON texts. */
export interface EventBatch {
  readonly records: readonly string[]
  /** The last of its page. */
  readonly isLast: boolean
}

/**
 * Splits a page into batches: every record is written once, here, and not before the batch in front of it was sent, so that
 * a large page does not hold the event loop. An empty page is one empty batch.
 *
 * The split depends on the page alone, so a page that is sent again splits the same way and its sequence numbers mean the
 * same records. A record larger than a batch travels alone.
 */
export function* splitIntoEvents(records: readonly Json[]): Generator<EventBatch> {
  let batch: string[] = []
  let bytes = 0
  for (const record of records) {
    const text = JSON.stringify(record)
    const added = Buffer.byteLength(text) + 1
    if (batch.length > 0 && (batch.length === BATCH_RECORDS_MAX || bytes + added > BATCH_BYTES_MAX)) {
      yield { records: batch, isLast: false }
      batch = []
      bytes = 0
    }
    batch.push(text)
    bytes += added
  }
  yield { records: batch, isLast: true }
}
