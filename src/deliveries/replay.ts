import { type Clock, Failure, notFound } from '../base/index.ts'
import type { Db, Tx } from '../database/index.ts'
import { startTask, type TaskRecord } from '../tasks/index.ts'
import { getWebhook, type WebhookRecord } from '../webhooks/index.ts'
import type { DeliveryRecord } from './delivery.ts'
import { enqueueDeliveries } from './enqueue.ts'
import { getDeliveryRecord } from './read-deliveries.ts'
import { MISSING_KIND, RECOVER_KIND } from './recover.ts'

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
export async function getActiveWebhook(tx: Db, environmentId: string, webhookId: string): Promise<WebhookRecord> {
  const webhook = await getWebhook(tx, environmentId, webhookId)
  if (!webhook.isActive)
    throw new Failure('WEBHOOK_INACTIVE', 'the webhook is turned off: set is_active to true, then send again')
  return webhook
}
