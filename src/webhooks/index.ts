/**
 * Webhooks: the addresses of customers' applications, and signed deliveries to them.
 *
 * Lives here: webhooks and their signing secrets (Standard Webhooks), and one delivery with its in-process retries. Never
 * here: what the events are about (`events/` has their catalog), and retries of longer than some seconds, which are the
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
