import { setImmediate } from 'node:timers/promises'
import type { Database, Db, Tx } from '../../foundation/database/index.ts'
import {
  continueDispatchAfter,
  findEventsByRefs,
  finishDispatch,
  isAskedFor,
  listDispatchTurns,
  lockUndispatchedEvents,
  type UndispatchedEvent,
} from '../../platform/outbox/index.ts'
import { listSubscribers, type WebhookSubscriber } from './load-webhooks.ts'
import { enqueueDeliveries } from './sql/delivery.ts'

/** Deliveries that one transaction creates: about a quarter of a second. */
export const DELIVERIES_PER_ROUND_MAX = 5_000
/** Events of one transaction, and environments that share it. */
const EVENTS_PER_ROUND_MAX = 500
const ENVIRONMENTS_PER_ROUND_MAX = 50
/** Filters are evaluated for so long without other work in between. */
const TURN_MS_MAX = 10

/** What one round of dispatch did. */
export interface DispatchRound {
  readonly events: number
  readonly deliveries: number
  /** There may be more events. */
  readonly hasMore: boolean
}

/**
 * Dispatch: creates a delivery of each event for each webhook that asks for it, once, by however many processes.
 *
 * A round is one transaction, bounded by the deliveries that it creates and not by events, of which one may be for a thousand
 * webhooks: such an event is continued in the next round. The environments with events share the round, and take turns where
 * they are many, so that none waits for the fan-out of another. A round that fails is followed by one of half the size.
 */
export class Dispatcher {
  readonly #database: Pick<Database, 'pool' | 'transaction'>
  /** The environment that had the last turn; null: the next round begins with the first one. */
  #after: string | null = null
  /** Deliveries of the next round. */
  #size = DELIVERIES_PER_ROUND_MAX

  constructor(database: Pick<Database, 'pool' | 'transaction'>) {
    this.#database = database
  }

  async runOnce(): Promise<DispatchRound> {
    const environmentIds = await this.#nextTurns()
    if (environmentIds.length === 0) return { events: 0, deliveries: 0, hasMore: false }
    const size = this.#size
    try {
      const round = await this.#database.transaction((tx) => dispatchRound(tx, environmentIds, size))
      this.#size = Math.min(size * 2, DELIVERIES_PER_ROUND_MAX)
      return { ...round, hasMore: round.hasMore || this.#after !== null }
    } catch (error) {
      // It took too long, most likely: it would again. The next one begins with the next environments.
      this.#size = Math.max(1, Math.floor(size / 2))
      throw error
    }
  }

  async #nextTurns(): Promise<readonly string[]> {
    const limit = Math.min(ENVIRONMENTS_PER_ROUND_MAX, this.#size)
    const after = this.#after
    const next = await listDispatchTurns(this.#database.pool, after, limit)
    this.#after = next.length === limit ? (next.at(-1) ?? null) : null
    return next.length === 0 && after !== null ? await this.#nextTurns() : next
  }
}

async function dispatchRound(tx: Tx, environmentIds: readonly string[], size: number): Promise<DispatchRound> {
  const eventsMax = Math.ceil(Math.min(EVENTS_PER_ROUND_MAX, size) / environmentIds.length)
  const events = await lockUndispatchedEvents(tx, environmentIds, eventsMax)
  if (events.length === 0) return { events: 0, deliveries: 0, hasMore: false }
  const plan = planRound(events, await listSubscribers(tx, environmentIds), size)
  const passing = await filterByContent(tx, plan.wanted)
  await enqueueDeliveries(
    tx,
    passing.map(({ event: { environmentId, eventId }, subscriber: { webhookId } }) => ({
      environmentId,
      webhookId,
      eventId,
      trigger: 'automatic',
    })),
  )
  await finishDispatch(tx, plan.finished)
  for (const { event, afterWebhookId } of plan.continued) await continueDispatchAfter(tx, event, afterWebhookId)
  const hasMore = plan.finished.length < events.length || events.length >= eventsMax
  return { events: plan.finished.length, deliveries: passing.length, hasMore }
}

interface WantedEvent {
  readonly event: UndispatchedEvent
  readonly subscriber: WebhookSubscriber
}

/** What a round does. */
interface RoundPlan {
  /** The events and the webhooks that ask for their types, before the filters of webhooks; at most the size of the round. */
  readonly wanted: readonly WantedEvent[]
  readonly finished: readonly UndispatchedEvent[]
  /** Events of which only the webhooks up to one have their turn. */
  readonly continued: readonly { readonly event: UndispatchedEvent; readonly afterWebhookId: string }[]
}

/** Shares a round among its environments; what one leaves goes to those after it. */
function planRound(
  events: readonly UndispatchedEvent[],
  subscribers: readonly WebhookSubscriber[],
  size: number,
): RoundPlan {
  const subscribersOf = Map.groupBy(
    subscribers.toSorted((one, other) => (one.webhookId < other.webhookId ? -1 : 1)),
    ({ environmentId }) => environmentId,
  )
  const wanted: WantedEvent[] = []
  const finished: UndispatchedEvent[] = []
  const continued: { event: UndispatchedEvent; afterWebhookId: string }[] = []
  const groups = Map.groupBy(events, ({ environmentId }) => environmentId)
  let groupsLeft = groups.size
  for (const [environmentId, group] of groups) {
    let left = Math.max(1, Math.ceil((size - wanted.length) / groupsLeft--))
    for (const event of group) {
      if (left === 0) break
      const asking = askingFor(event, subscribersOf.get(environmentId) ?? [])
      const taken = asking.slice(0, left)
      left -= taken.length
      wanted.push(...taken.map((subscriber) => ({ event, subscriber })))
      const last = taken.at(-1)
      if (taken.length === asking.length || last === undefined) finished.push(event)
      else continued.push({ event, afterWebhookId: last.webhookId })
    }
  }
  return { wanted, finished, continued }
}

/** The webhooks that ask for the type of an event and have no delivery of it. */
function askingFor(
  { type, exceptWebhookId, afterWebhookId }: UndispatchedEvent,
  subscribers: readonly WebhookSubscriber[],
): readonly WebhookSubscriber[] {
  if (type === null) return []
  return subscribers.filter(
    ({ webhookId, eventTypes }) =>
      (afterWebhookId === null || webhookId > afterWebhookId) &&
      webhookId !== exceptWebhookId &&
      isAskedFor(eventTypes, type),
  )
}

/** Those that pass the filter of their webhook. Payloads are read only for webhooks that have one. */
async function filterByContent(tx: Db, wanted: readonly WantedEvent[]): Promise<readonly WantedEvent[]> {
  const filtered = wanted.filter(({ subscriber }) => subscriber.passesFilter !== null).map(({ event }) => event)
  if (filtered.length === 0) return wanted
  const records = new Map((await findEventsByRefs(tx, [...new Set(filtered)])).map((record) => [record.id, record]))
  const passing: WantedEvent[] = []
  let turnBeganMs = performance.now()
  for (const each of wanted) {
    const { passesFilter } = each.subscriber
    const record = records.get(each.event.eventId)
    if (passesFilter === null || (record !== undefined && passesFilter(record))) passing.push(each)
    if (performance.now() - turnBeganMs < TURN_MS_MAX) continue
    await setImmediate()
    turnBeganMs = performance.now()
  }
  return passing
}
