import { setImmediate } from 'node:timers/promises'
import type { Database, Tx } from '../database/index.ts'
import { type DispatchedEvent, findEventsByRefs, isAskedFor, takeUndispatchedEvents } from '../events/index.ts'
import { listSubscribers, type WebhookSubscriber } from '../webhooks/index.ts'
import type { NewDelivery } from './delivery.ts'
import { enqueueDeliveries } from './enqueue.ts'

/** Events of one transaction. */
const EVENTS_PER_ROUND_MAX = 500
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
 * Dispatch: takes events that have no deliveries yet and creates one for each webhook that asks for the event, in one
 * transaction, so that each event is fanned out once by however many processes.
 */
export async function dispatchEvents(database: Database): Promise<DispatchRound> {
  return await database.transaction(async (tx) => {
    const events = await takeUndispatchedEvents(tx, EVENTS_PER_ROUND_MAX)
    const deliveries = events.length === 0 ? [] : await matchEvents(tx, events)
    await enqueueDeliveries(tx, deliveries)
    return { events: events.length, deliveries: deliveries.length, hasMore: events.length === EVENTS_PER_ROUND_MAX }
  })
}

/** A delivery for every event and webhook that asks for it. */
async function matchEvents(tx: Tx, events: readonly DispatchedEvent[]): Promise<readonly NewDelivery[]> {
  const subscribers = await listSubscribers(tx, [...new Set(events.map(({ environmentId }) => environmentId))])
  const byEnvironment = Map.groupBy(subscribers, ({ environmentId }) => environmentId)
  const wanted = events.flatMap((event) =>
    (byEnvironment.get(event.environmentId) ?? [])
      .filter(({ webhookId, eventTypes }) => webhookId !== event.exceptWebhookId && isAskedFor(eventTypes, event.type))
      .map((subscriber) => ({ event, subscriber })),
  )
  const passing = await filterByContent(tx, wanted)
  return passing.map(({ event: { environmentId, eventId }, subscriber: { webhookId } }) => ({
    environmentId,
    webhookId,
    eventId,
    trigger: 'automatic',
  }))
}

interface WantedEvent {
  readonly event: DispatchedEvent
  readonly subscriber: WebhookSubscriber
}

/** Those that pass the filter of their webhook. Payloads are read only for webhooks that have one. */
async function filterByContent(tx: Tx, wanted: readonly WantedEvent[]): Promise<readonly WantedEvent[]> {
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
