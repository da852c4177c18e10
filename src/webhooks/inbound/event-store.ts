import { MicroBatcher } from '../../foundation/base/index.ts'
import { type Database, isDataError } from '../../foundation/database/index.ts'
import { countDuplicates, insertInboundEvents, type NewInboundEvent, type StoredEvent } from './sql/receive.ts'

/** Batches under way: one more than a connection keeps busy while another commits. */
const BATCHES_MAX = 2
const BATCH_MAX = 200
/** Requests with a larger body are stored a few at a time. */
const SMALL_BYTES_MAX = 16 * 1024
const LARGE_BATCH_MAX = 4

/** Stores requests; those that come in together share a statement and a commit. */
export interface EventStore {
  /** Resolves once the request is committed. @returns whether an earlier request has its dedupe key */
  store(event: NewInboundEvent): Promise<{ readonly isDuplicate: boolean }>
}

/** Under load a commit carries many requests, alone a request waits for none. */
export function createEventStore(database: Pick<Database, 'pool' | 'transaction'>): EventStore {
  const process = (events: readonly NewInboundEvent[]) => storeEach(database, events)
  const small = new MicroBatcher({ concurrencyMax: BATCHES_MAX, batchMax: BATCH_MAX, process })
  const large = new MicroBatcher({ concurrencyMax: BATCHES_MAX, batchMax: LARGE_BATCH_MAX, process })
  return {
    async store(event) {
      const batcher = event.body.byteLength <= SMALL_BYTES_MAX ? small : large
      const outcome = await batcher.run(event)
      if (outcome.kind === 'failed') throw outcome.error
      return { isDuplicate: outcome.eventId !== event.id }
    },
  }
}

/** The event that has the dedupe key of a request, or why the request cannot be stored. */
type StoreOutcome =
  | { readonly kind: 'stored'; readonly eventId: string }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Stores a batch; one by one where a value in it is wrong, so that no request makes those of others fail. */
async function storeEach(
  database: Pick<Database, 'pool' | 'transaction'>,
  events: readonly NewInboundEvent[],
): Promise<readonly StoreOutcome[]> {
  try {
    const eventIds = await storeBatch(database, events)
    return eventIds.map((eventId) => ({ kind: 'stored', eventId }))
  } catch (error) {
    if (!isDataError(error)) throw error
    if (events.length === 1) return [{ kind: 'failed', error }]
  }
  const outcomes: StoreOutcome[] = []
  for (const event of events) {
    const stored = storeEach(database, [event])
    outcomes.push(...(await stored.catch((error: unknown) => [{ kind: 'failed', error } as const])))
  }
  return outcomes
}

/** The events that have the dedupe keys, in the order of the requests. */
async function storeBatch(
  database: Pick<Database, 'pool' | 'transaction'>,
  events: readonly NewInboundEvent[],
): Promise<readonly string[]> {
  const repeats = Map.groupBy(events, claimOf)
  const firsts = [...repeats.values()].flatMap(([first]) => first ?? [])
  const stored = await insertInboundEvents(database.pool, firsts)
  const holders = new Map(stored.map(({ id, eventId }) => [id, eventId]))
  const outcomes = events.map((event): StoredEvent & Pick<NewInboundEvent, 'environmentId'> => {
    const firstId = repeats.get(claimOf(event))?.[0]?.id ?? event.id
    return { environmentId: event.environmentId, id: event.id, eventId: holders.get(firstId) ?? firstId }
  })
  const duplicates = outcomes.filter(({ id, eventId }) => id !== eventId)
  // In a statement of its own, which sees what a concurrent one has just committed.
  if (duplicates.length > 0) await database.transaction((tx) => countDuplicates(tx, duplicates))
  return outcomes.map(({ eventId }) => eventId)
}

/** What no two requests of one statement may share. */
function claimOf({ id, sourceId, dedupe }: NewInboundEvent): string {
  return dedupe === undefined ? id : `${sourceId} ${dedupe.key}`
}
