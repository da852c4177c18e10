/**
 * Webhooks: the addresses of customers' applications, and one signed request to them.
 *
 * Lives here: webhooks with their signing secrets (Standard Webhooks), which events each asks for, the request of one attempt,
 * a delivery with in-process retries for syncs, and the health of the receivers. Never here: what the events are about
 * (`events/` has their catalog), and which deliveries wait, which is the queue's.
 */

export {
  ATTEMPT_TIMEOUT_MS,
  type DeliveryAttempt,
  type DeliveryExchange,
  sendDeliveryRequest,
} from './attempt.ts'
export { type DeliverDeps, type DeliveryResult, deliver } from './deliver.ts'
export { encodeEvent, encodeEventWithList, type OutboundEvent, type OutboundMessage } from './envelope.ts'
export { recordWebhookOutcomes, type WebhookOutcome } from './health.ts'
export {
  type LoadedWebhook,
  type LoadWebhookDeps,
  listSubscribers,
  loadWebhooks,
  type WebhookSubscriber,
  withCurrentSecrets,
} from './load-webhooks.ts'
export { buildDeliveryRequest, type DeliveryRequest, EVENT_BYTES_DEFAULT, type WebhookTarget } from './request.ts'
export { SECRETS_AGE_MAX_MS } from './signing.ts'
export type { WebhookRef } from './sql/load-webhooks.ts'
export { disableWebhooksOfEnvironments, listWebhooks, type WebhookRecord } from './sql/webhook.ts'
export { webhookState } from './state.ts'
export {
  createWebhook,
  deleteWebhook,
  findWebhookTarget,
  getWebhook,
  rotateWebhookSecret,
  settleRotation,
  updateWebhook,
  type WebhookChange,
  type WebhookDeps,
  type WebhookInput,
} from './webhook.ts'
