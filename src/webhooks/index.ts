/**
 * Webhooks: the addresses of customers' applications, the events they want, and signed deliveries to them.
 *
 * Lives here: keeping webhooks and their secrets, the event catalogue, Standard Webhooks signing, one delivery with its
 * quick retries. Never here: what the events are about, or waiting longer than a few seconds for a receiver; that is the
 * queue's.
 */

export { type DeliverDeps, type DeliveryAttempt, type DeliveryResult, deliver } from './deliver.ts'
export {
  encodeEvent,
  encodeEventWithList,
  type OutboundEvent,
  type OutboundMessage,
  type WebhookTarget,
} from './events.ts'
export type { WebhookChange, WebhookRecord } from './sql.ts'
export {
  createWebhook,
  deleteWebhook,
  findWebhookTarget,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookDeps,
} from './webhook.ts'
