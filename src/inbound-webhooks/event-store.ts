import { MicroBatcher } from '../base/index.ts'
import { type Database, isDataError } from '../database/index.ts'
import { countDuplicates, insertInboundEvents, moveClaims, type NewInboundEvent } from './sql/receive.ts'

/** Batches under way: one more than a connection keeps busy while another commits. */
const BATCHES_MAX = 2
const BATCH_MAX = 200
/** Requests with a larger body are stored a few at a time. */
const SMALL_BYTES_MAX = 16 * 1024
const LARGE_BATCH_MAX = 4

/** Stores requests; those that come in together share a statement and a commit. */
export interface EventStore {
  /** Resolves once the request is committed. @returns whether an earlier request has one of its dedupe keys */
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

/** The event that has a dedupe key of a request, or why the request cannot be stored. */
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
  const { firsts, firstOf } = groupDuplicates(events)
  const stored = await insertInboundEvents(database.pool, firsts)
  const holders = new Map(stored.map(({ id, eventId }) => [id, eventId]))
  const owners = events.map(({ id }) => holders.get(firstOf.get(id) ?? id) ?? id)
  const duplicates = events.flatMap(({ id, environmentId }, index) => {
    const eventId = owners[index] ?? id
    return eventId === id ? [] : [{ environmentId, id, eventId }]
  })
  // In a statement of its own, which sees what a concurrent one has just committed.
  if (duplicates.length > 0)
    await database.transaction(async (tx) => {
      await countDuplicates(tx, duplicates)
      await moveClaims(
        tx,
        firsts.flatMap((first) => {
          const eventId = holders.get(first.id) ?? first.id
          return eventId === first.id ? [] : [{ ...first, eventId }]
        }),
      )
    })
  return owners
}

/**
 * The requests that share no dedupe key with an earlier one of the batch, each with the keys of those that do.
 *
 * @returns `firstOf`: of each request the one that stands for it
 */
function groupDuplicates(events: readonly NewInboundEvent[]): {
  readonly firsts: readonly NewInboundEvent[]
  readonly firstOf: ReadonlyMap<string, string>
} {
  const firsts = new Map<string, NewInboundEvent>()
  const firstOf = new Map<string, string>()
  const holders = new Map<string, string>()
  for (const event of events) {
    const claims = event.dedupeKeys.map((key) => ({ key, claim: `${event.sourceId} ${key}` }))
    const held = claims.map(({ claim }) => holders.get(claim)).find((holder) => holder !== undefined)
    const first = firsts.get(held ?? '') ?? { ...event, dedupeKeys: [] }
    const added = claims.filter(({ claim }) => !holders.has(claim))
    for (const { claim } of added) holders.set(claim, first.id)
    firsts.set(first.id, { ...first, dedupeKeys: [...first.dedupeKeys, ...added.map(({ key }) => key)] })
    firstOf.set(event.id, first.id)
  }
  return { firsts: [...firsts.values()], firstOf }
}
