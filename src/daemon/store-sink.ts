import type { DotPath, Json } from '../base/index.ts'
import { recordKeyOf, type Sink, type SinkAnswer } from '../sync/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { HeldRun } from './held-run.ts'
import { type RunStore, type Store, StoreAway, type StoredRow } from './store.ts'

/** What delivering to a store needs. */
export interface StoreSinkDeps {
  readonly store: Store
  readonly logger: Logger
}

/** Reason on a run that waits because the store of its daemon is away. */
const AWAY_REASON = 'STORE_UNAVAILABLE'
/** Every page and every problem has a number, so that it is remembered as soon as it is dealt with. */
const TAKEN: SinkAnswer = { kind: 'accepted', sequences: 1 }
const NOTHING_TAKEN: SinkAnswer = { kind: 'accepted', sequences: 0 }

/**
 * Delivers a run into a store, which is taken over with the first page. Problems of the run have no place in a store: they
 * are counted by the engine and logged here.
 *
 * Nothing is written once the lease may be over. @throws Failure LEASE_LOST
 */
export function createStoreSink({ store, logger }: StoreSinkDeps, held: HeldRun): Sink & AsyncDisposable {
  const { run } = held
  let opened: RunStore | undefined
  async function write(resource: string, sequence: number, rows: readonly StoredRow[]): Promise<SinkAnswer> {
    try {
      held.require()
      opened ??= await store.open(run.holder)
      held.require()
      await opened.write({ resource, sequence, rows })
      return TAKEN
    } catch (error) {
      if (error instanceof StoreAway)
        return { kind: 'away', error: { reason: AWAY_REASON, message: `the store is away: ${error.message}` } }
      throw error
    }
  }
  return {
    started: async () => NOTHING_TAKEN,
    async page({ resource, method, sequence, records, errors }) {
      for (const error of errors) logger.warn({ run_id: run.id, resource, ...error }, 'a listing failed')
      return records.length === 0
        ? TAKEN
        : await write(resource, sequence, rowsOf(records, run.idPath(resource, method)))
    },
    async problem({ resource, error }) {
      logger.warn({ run_id: run.id, resource, ...error }, 'a listing failed')
      return TAKEN
    },
    async [Symbol.asyncDispose]() {
      await opened?.[Symbol.asyncDispose]()
    },
  }
}

/** One row per key: of a record that is twice on a page the later one counts. */
function rowsOf(records: readonly Json[], idPath: DotPath): readonly StoredRow[] {
  const rows = new Map<string, StoredRow>()
  for (const record of records) {
    const key = recordKeyOf(record, idPath)
    rows.set(key, { key, record })
  }
  return [...rows.values()]
}
