/**
 * Webhooks: the addresses of customers' applications, the events they want, and signed deliveries to them.
 *
 * Lives here: keeping webhooks and their secrets, the event catalogue, Standard Webhooks signing, one delivery with its
 * quick retries. Never here: what the events are about, or waiting longer than a few seconds for a receiver; that is the
 * queue's.
 */
export { checkEventTypes, EVENT_TYPES, wantsEvent } from './event-types.ts'
export type { DeliveryAttempt } from './outbound/attempt.ts'
export { type DeliverDeps, type DeliveryResult, deliver } from './outbound/deliver.ts'
export {
  encodeEvent,
  encodeEventWithList,
  type OutboundEvent,
  type OutboundMessage,
  type WebhookTarget,
} from './outbound/envelope.ts'
export { newSigningSecret, signatureHeaders } from './outbound/signature.ts'

export {
  createWebhook,
  deleteWebhook,
  findWebhookTarget,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookDeps,
  type WebhookInput,
} from './webhook.ts'
