import type { Json } from '../../base/index.ts'

/** Records of one event at most. */
const BATCH_RECORDS_MAX = 500
/** Bytes of the records in one event; the rest of the body stays below 4 KiB, so that bodies stay below 256 KiB. */
const BATCH_BYTES_MAX = 252 * 1024

/**
 * Splits a page into batches, each a list of JSON texts: every record is written once, here.
 *
 * The split depends on the page alone, so a page that is sent again splits the same way and its sequence numbers mean the
 * same records. A record larger than a batch travels alone.
 */
export function batchesOf(records: readonly Json[]): readonly (readonly string[])[] {
  const batches: string[][] = []
  let batch: string[] = []
  let bytes = 0
  for (const record of records) {
    const text = JSON.stringify(record)
    const added = Buffer.byteLength(text) + 1
    if (batch.length > 0 && (batch.length === BATCH_RECORDS_MAX || bytes + added > BATCH_BYTES_MAX)) {
      batches.push(batch)
      batch = []
      bytes = 0
    }
    batch.push(text)
    bytes += added
  }
  if (batch.length > 0) batches.push(batch)
  return batches
}
