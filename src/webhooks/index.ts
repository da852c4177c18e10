/**
 * Webhooks: the addresses of customers' applications, the event catalog, and signed deliveries.
 *
 * Lives here: webhooks and their signing secrets (Standard Webhooks), and one delivery with its in-process retries. Never
 * here: what the events are about, and retries of longer than some seconds, which are the queue's.
 */

export { type DeliverDeps, type DeliveryAttempt, type DeliveryResult, deliver } from './deliver.ts'
export {
  encodeEvent,
  encodeEventWithList,
  type OutboundEvent,
  type OutboundMessage,
  type WebhookTarget,
} from './events.ts'
export { listWebhooks, type WebhookChange, type WebhookRecord } from './sql.ts'
export {
  createWebhook,
  deleteWebhook,
  findWebhookTarget,
  getWebhook,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookDeps,
} from './webhook.ts'
