/**
 * Events to customers' applications: webhooks with their signing secrets (Standard Webhooks), which events each asks for, a delivery for
 * each such event, sent until the receiver has accepted it, the attempts are exhausted, or the webhook is gone, and the health of receivers.
 *
 * Never here: what an event means (`platform/outbox/` has their catalog), and the events of a run to its own destination, which the run sends in
 * order (`sync/jobs/`).
 */

export type { DeliveryAttempt } from './attempt.ts'
export { type DeliverDeps, type DeliveryResult, deliver } from './deliver.ts'
export {
  type AttemptRecord,
  DELIVERY_ATTEMPTS_MAX,
  DELIVERY_STATES,
  type DeliveryRecord,
  type HeaderPairs,
} from './delivery.ts'
export { expungeEvent, replayDelivery, startRecovery, testWebhook } from './delivery-actions.ts'
export { DeliveryWorker } from './delivery-worker.ts'
export { encodeEvent, encodeEventWithList, type OutboundEvent, type OutboundMessage } from './envelope.ts'
export { type LoadedWebhook, type LoadWebhookDeps, withCurrentSecrets } from './load-webhooks.ts'
export { type DeliveryDetail, getDelivery, listDeliveries, summariseDeliveries } from './read-deliveries.ts'
export { DELIVERY_TASKS } from './recover.ts'
export { EVENT_BYTES_DEFAULT, type WebhookTarget } from './request.ts'
export { ATTEMPT_DAYS, DELIVERY_DAYS } from './sql/days.ts'
export { countDeliveryBacklog, deleteDeliveriesOfEnvironment } from './sql/delivery.ts'
export type { DeliveryFilter } from './sql/history.ts'
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
  type WebhookDeletionDeps,
  type WebhookDeps,
  type WebhookInput,
} from './webhook.ts'
