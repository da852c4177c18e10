import { invalidFields, newId, suggest } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { appendEvents, EVENT_TYPES, type EventType, examplePayload, findEventType } from '../events/index.ts'
import type { DeliveryRecord } from './delivery.ts'
import { enqueueDeliveries } from './enqueue.ts'
import { getDeliveryRecord } from './read-deliveries.ts'
import { getActiveWebhook } from './replay.ts'

const EVENT_TYPE_DEFAULT: EventType = 'integrated_account:created'

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
