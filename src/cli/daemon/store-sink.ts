import type { DotPath, Json } from '../../foundation/json/index.ts'
import { recordKeyOf, type Sink, type SinkResult } from '../../sync/jobs/index.ts'
import type { LeaseTimer } from '../../sync/runs/index.ts'
import type { DaemonRun } from './daemon-run.ts'
import type { RunStore, Store, StoredPage, StoredRow } from './store.ts'
import { StoreError } from './store-problem.ts'

/** Pages and listing errors take one sequence number each, so that the checkpoint advances after each. */
const ONE_ACCEPTED: SinkResult = { kind: 'accepted', sequences: 1 }
const NONE_ACCEPTED: SinkResult = { kind: 'accepted', sequences: 0 }

/**
 * Sink that writes the pages of a run to a store, which is taken over with the first page. Listing errors are on the
 * run and in the log already.
 *
 * A problem of the store is the result of its page: the run waits, is tried again or fails with the store's reason.
 *
 * Nothing is written once the lease may have expired. @throws Failure LEASE_LOST
 */
export function createStoreSink(
  store: Store,
  run: DaemonRun,
  lease: Pick<LeaseTimer<DaemonRun>, 'assertHeld'>,
): Sink & AsyncDisposable {
  let opened: RunStore | undefined
  async function write(page: StoredPage): Promise<SinkResult> {
    try {
      lease.assertHeld()
      opened ??= await store.open(run.holder)
      lease.assertHeld()
      await opened.write(page)
      return ONE_ACCEPTED
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      const { effect, reason, message } = error.problem
      return { kind: effect, error: { reason, message } }
    }
  }
  return {
    started: async () => NONE_ACCEPTED,
    async page({ resource, method, sequence, page: { records } }) {
      return records.length === 0
        ? ONE_ACCEPTED
        : await write({
            resource,
            sequence,
            rows: rowsOf(records, run.idPath(resource, method)),
            recordSchema: run.recordSchema(resource, method),
          })
    },
    listingError: async () => ONE_ACCEPTED,
    async [Symbol.asyncDispose]() {
      await opened?.[Symbol.asyncDispose]()
    },
  }
}

/** One row per key: the last one of a record that is on the page twice. */
function rowsOf(records: readonly Json[], idPath: DotPath): readonly StoredRow[] {
  const rows = new Map<string, StoredRow>()
  for (const record of records) {
    const key = recordKeyOf(record, idPath)
    rows.set(key, { key, record })
  }
  return [...rows.values()]
}
