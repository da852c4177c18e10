import { MicroBatcher } from '../base/index.ts'
import { type Database, isDataError } from '../database/index.ts'
import {
  countDuplicates,
  insertInboundEvents,
  moveClaims,
  type NewInboundEvent,
  type StoredEvent,
} from './sql/receive.ts'

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
  const holders = new Map<string, string>()
  let rest = events
  while (rest.length > 0) {
    const { firsts, repeated, later } = splitBatch(rest)
    for (const { id, eventId } of await storeDistinct(database, firsts, repeated)) holders.set(id, eventId)
    rest = later
  }
  return events.map(({ id }) => holders.get(id) ?? id)
}

/** A request that repeats one in front of it: it has its content, or its id and no content. */
interface Repeated {
  readonly event: NewInboundEvent
  readonly firstId: string
}

/** @param firsts no two of which have a dedupe key in common */
async function storeDistinct(
  database: Pick<Database, 'pool' | 'transaction'>,
  firsts: readonly NewInboundEvent[],
  repeated: readonly Repeated[],
): Promise<readonly StoredEvent[]> {
  const stored = await insertInboundEvents(database.pool, firsts)
  const holders = new Map(stored.map(({ id, eventId }) => [id, eventId]))
  const held = (event: NewInboundEvent, firstId: string) => ({ ...event, eventId: holders.get(firstId) ?? firstId })
  const kept = firsts.map((event) => held(event, event.id))
  const outcomes = [...kept, ...repeated.map(({ event, firstId }) => held(event, firstId))]
  const isDuplicate = ({ id, eventId }: StoredEvent) => id !== eventId
  const duplicates = outcomes.filter(isDuplicate)
  // In a statement of its own, which sees what a concurrent one has just committed.
  if (duplicates.length > 0)
    await database.transaction(async (tx) => {
      await countDuplicates(tx, duplicates)
      await moveClaims(tx, kept.filter(isDuplicate))
    })
  return outcomes
}

/**
 * Splits a batch: requests that share no dedupe key with each other; those that repeat one of these; and those that share an id with
 * one but have another content. These are stored later, because their content may be that of an earlier event, which then has them.
 */
function splitBatch(events: readonly NewInboundEvent[]): {
  readonly firsts: readonly NewInboundEvent[]
  readonly repeated: readonly Repeated[]
  readonly later: readonly NewInboundEvent[]
} {
  const firsts: NewInboundEvent[] = []
  const repeated: Repeated[] = []
  const later: NewInboundEvent[] = []
  const holders = new Map<string, string>()
  for (const event of events) {
    const { id, content } = event.dedupeKeys
    const [idClaim, contentClaim] = [id, content].map((key) => (key === null ? undefined : `${event.sourceId} ${key}`))
    const idHolder = holders.get(idClaim ?? '')
    const firstId = contentClaim === undefined ? idHolder : holders.get(contentClaim)
    if (firstId !== undefined) repeated.push({ event, firstId })
    else if (idHolder !== undefined) later.push(event)
    else {
      firsts.push(event)
      for (const claim of [idClaim, contentClaim]) if (claim !== undefined) holders.set(claim, event.id)
    }
  }
  return { firsts, repeated, later }
}
