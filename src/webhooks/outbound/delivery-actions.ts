import { type Clock, Failure, invalidFields, newId, notFound, suggest } from '../../foundation/base/index.ts'

import type { Db, Tx } from '../../foundation/database/index.ts'
import { startTask, type TaskRecord } from '../../foundation/queue/index.ts'
import {
  appendEvents,
  EVENT_TYPES,
  type EventRecord,
  type EventType,
  examplePayload,
  expungePayload,
  findEvent,
  findEventType,
} from '../../platform/outbox/index.ts'
import type { DeliveryRecord } from './delivery.ts'
import { getDeliveryRecord } from './read-deliveries.ts'
import { MISSING_KIND, RECOVER_KIND } from './recover.ts'
import { enqueueDeliveries } from './sql/delivery.ts'
import { discardWaiting, expungeResponses, stopSenders } from './sql/expunge.ts'
import type { WebhookRecord } from './sql/webhook.ts'
import { getWebhook } from './webhook.ts'

const EVENT_TYPE_DEFAULT: EventType = 'integrated_account:created'

/**
 * Sends an event to the webhook of a delivery again: makes another delivery of it. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND also when the event or the webhook is gone, WEBHOOK_INACTIVE
 */
export async function replayDelivery(tx: Tx, environmentId: string, id: string): Promise<DeliveryRecord> {
  const { eventId, webhookId, trigger: first } = await getDeliveryRecord(tx, environmentId, id)
  await getActiveWebhook(tx, environmentId, webhookId)
  // A test stays one: its envelope says so.
  const trigger = first === 'test' ? 'test' : 'replay'
  const [replay] = await enqueueDeliveries(tx, [{ environmentId, webhookId, eventId, trigger }])
  if (replay === undefined) throw notFound('event', eventId)
  return await getDeliveryRecord(tx, environmentId, replay)
}

/** A range of time in which to look for what a webhook did not get. */
export interface RecoveryRange {
  readonly since: Date
  /** Absent or in the future: now. */
  readonly until?: Date | undefined
}

/**
 * Starts the task that sends again what failed or was discarded (`recover`), or sends what was never sent (`missing`).
 *
 * @throws Failure RESOURCE_NOT_FOUND, WEBHOOK_INACTIVE, RATE_LIMITED
 */
export async function startRecovery(
  { clock }: { readonly clock: Pick<Clock, 'now'> },
  tx: Tx,
  environmentId: string,
  webhookId: string,
  what: 'recover' | 'missing',
  { since, until }: RecoveryRange,
): Promise<TaskRecord> {
  const { id } = await getActiveWebhook(tx, environmentId, webhookId)
  const now = clock.now()
  const end = until === undefined || until > now ? now : until
  const params = { webhook_id: id, since: since.toISOString(), until: end.toISOString() }
  return await startTask(tx, { environmentId, kind: what === 'recover' ? RECOVER_KIND : MISSING_KIND, params })
}

/** The webhook, which may be sent deliveries. @throws Failure RESOURCE_NOT_FOUND, WEBHOOK_INACTIVE */
async function getActiveWebhook(tx: Db, environmentId: string, webhookId: string): Promise<WebhookRecord> {
  const webhook = await getWebhook(tx, environmentId, webhookId)
  if (!webhook.isActive)
    throw new Failure('WEBHOOK_INACTIVE', 'the webhook is turned off: set is_active to true, then send again')
  return webhook
}

/**
 * Sends an example of an event to one webhook, independent of its event types and filter. Needs a transaction.
 *
 * @param eventType a name of the event catalog; empty: `integrated_account:created`
 * @throws Failure RESOURCE_NOT_FOUND, WEBHOOK_INACTIVE, INVALID_FIELD
 */
export async function testWebhook(
  tx: Tx,
  environmentId: string,
  webhookId: string,
  eventType: string,
): Promise<DeliveryRecord> {
  const type = eventType === '' ? EVENT_TYPE_DEFAULT : findEventType(eventType)
  if (type === undefined)
    throw invalidFields([
      {
        field: 'event_type',
        description: `is no event${suggest(eventType, EVENT_TYPES) || ': see Webhook.event_types'}`,
        rule: 'event_types.unknown',
      },
    ])
  const webhook = await getActiveWebhook(tx, environmentId, webhookId)
  const eventId = newId()
  await appendEvents(tx, [{ environmentId, id: eventId, type, payload: examplePayload(type), isTest: true }])
  const item = { environmentId, webhookId: webhook.id, eventId, trigger: 'test' } as const
  const [delivery = ''] = await enqueueDeliveries(tx, [item])
  return await getDeliveryRecord(tx, environmentId, delivery)
}

/**
 * Removes the content of an event for good: its payload, and what receivers answered to it, also what they answer later. Its
 * deliveries keep their rows; those that wait, or would be sent again, are discarded. Needs a transaction. Idempotent.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function expungeEvent(tx: Db, environmentId: string, id: string): Promise<EventRecord> {
  if (!(await expungePayload(tx, environmentId, id))) throw notFound('event', id)
  await discardWaiting(tx, environmentId, id)
  await stopSenders(tx, environmentId, id)
  await expungeResponses(tx, environmentId, id)
  const event = await findEvent(tx, environmentId, id)
  if (event === undefined) throw notFound('event', id)
  return event
}
