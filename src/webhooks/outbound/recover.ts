import { Failure, lowestIdAt } from '../../foundation/base/index.ts'
import { countFitting, type Db, type Tx } from '../../foundation/database/index.ts'
import type { Json } from '../../foundation/json/index.ts'
import type { TaskKind, TaskRecord, TaskStep } from '../../foundation/queue/index.ts'
import { findEvents, isAskedFor } from '../../platform/outbox/index.ts'
import type { DeliveryTrigger } from './delivery.ts'
import { listSubscribers, type WebhookSubscriber } from './load-webhooks.ts'
import { enqueueDeliveries } from './sql/delivery.ts'
import {
  countDeliveriesBetween,
  countEventsBetween,
  type IdRange,
  type ScannedEvent,
  scanDeliveries,
  scanEvents,
} from './sql/recover.ts'

/** Names of the tasks in the contract. */
export const RECOVER_KIND = 'recover_deliveries'
export const MISSING_KIND = 'replay_missing_deliveries'

/** Rows that a step looks at: some 20 ms. */
const SCANNED_PER_STEP = 1_000
/** Payloads that a step reads, to be filtered; one is read in any case. */
const PAYLOAD_BYTES_PER_STEP = 4 * 1024 * 1024
/** Above this a task shows no total: counting so many takes some 0.2 s. */
const COUNTED_MAX = 1_000_000

/**
 * Makes deliveries of the events whose last delivery to the webhook failed or was discarded. A later delivery of the same event
 * leaves it out, so that nothing is recovered twice.
 */
const recoverDeliveries: TaskKind = {
  kind: RECOVER_KIND,
  async step(tx, task) {
    const { webhookId, range } = rangeOf(task)
    const total = task.cursor === null ? await countDeliveriesBetween(tx, range, webhookId, COUNTED_MAX) : undefined
    const scanned = await scanDeliveries(tx, range, webhookId, SCANNED_PER_STEP)
    const eventIds = scanned.filter(({ isUndelivered }) => isUndelivered).map(({ eventId }) => eventId)
    const deliveries = await enqueue(tx, task.environmentId, webhookId, eventIds, 'recovery')
    return { ...stepOver(scanned, scanned.length === SCANNED_PER_STEP), total, counts: { deliveries } }
  },
}

/** Makes deliveries of the events that the webhook asks for and has none of. */
const replayMissingDeliveries: TaskKind = {
  kind: MISSING_KIND,
  async step(tx, task) {
    const { webhookId, range } = rangeOf(task)
    const { eventTypes, passesFilter } = await getSubscriber(tx, task.environmentId, webhookId)
    const total = task.cursor === null ? await countEventsBetween(tx, range, COUNTED_MAX) : undefined
    const found = await scanEvents(tx, range, webhookId, SCANNED_PER_STEP)
    const asksFor = (event: ScannedEvent) => event.isUnsent && isAskedFor(eventTypes, event.type)
    const scanned = found.slice(
      0,
      countFitting(found, PAYLOAD_BYTES_PER_STEP, (event) => (asksFor(event) ? event.payloadBytes : 0)),
    )
    const events = await findEvents(
      tx,
      task.environmentId,
      scanned.filter(asksFor).map(({ id }) => id),
    )
    const eventIds = events.filter((event) => passesFilter?.(event) ?? true).map(({ id }) => id)
    const deliveries = await enqueue(tx, task.environmentId, webhookId, eventIds.toReversed(), 'missing')
    const hasMore = scanned.length < found.length || found.length === SCANNED_PER_STEP
    return { ...stepOver(scanned, hasMore), total, counts: { deliveries } }
  },
}

/** What background tasks do with deliveries. */
export const DELIVERY_TASKS: readonly TaskKind[] = [recoverDeliveries, replayMissingDeliveries]

/** The webhook, and the ids that the next step looks at. */
function rangeOf({ environmentId, params, cursor }: TaskRecord): {
  readonly webhookId: string
  readonly range: IdRange
} {
  const idAt = (time: Json | undefined) => lowestIdAt(new Date(String(time)))
  const after = typeof cursor === 'string' ? cursor : idAt(params.since)
  return { webhookId: String(params.webhook_id), range: { environmentId, after, below: idAt(params.until) } }
}

/** The progress of a step that has looked at these. */
function stepOver(scanned: readonly { readonly id: string }[], hasMore: boolean): Pick<TaskStep, 'done' | 'cursor'> {
  return { done: scanned.length, cursor: hasMore ? (scanned.at(-1)?.id ?? null) : null }
}

/** @throws Failure WEBHOOK_INACTIVE */
async function getSubscriber(tx: Db, environmentId: string, webhookId: string): Promise<WebhookSubscriber> {
  const subscriber = (await listSubscribers(tx, [environmentId])).find((each) => each.webhookId === webhookId)
  if (subscriber === undefined)
    throw new Failure('WEBHOOK_INACTIVE', 'the webhook has been turned off or deleted meanwhile')
  return subscriber
}

/** @returns how many deliveries were made: none of an event that no longer exists */
async function enqueue(
  tx: Tx,
  environmentId: string,
  webhookId: string,
  eventIds: readonly string[],
  trigger: DeliveryTrigger,
): Promise<number> {
  const items = eventIds.map((eventId) => ({ environmentId, webhookId, eventId, trigger }))
  return (await enqueueDeliveries(tx, items)).length
}
