/**
 * Deliveries: each event that a webhook asks for, sent until the receiver has accepted it, the attempts are exhausted, or the
 * webhook is gone. event → deliveries → attempts.
 *
 * Never here: which webhook asks for an event, how a request is signed (`webhooks/`), what an event means (`events/`), and the
 * events of a run to its own destination, which the run sends in order (`syncs/`).
 */

export {
  type AttemptRecord,
  DELIVERY_ATTEMPTS_MAX,
  DELIVERY_STATES,
  type DeliveryRecord,
  type DeliveryState,
  type DeliveryTrigger,
  type HeaderPairs,
} from './delivery.ts'
export { expungeEvent, replayDelivery, startRecovery, testWebhook } from './delivery-actions.ts'
export { DeliveryWorker } from './delivery-worker.ts'
export { type DeliveryDetail, getDelivery, listDeliveries, summariseDeliveries } from './read-deliveries.ts'
export { DELIVERY_TASKS } from './recover.ts'
export { ATTEMPT_DAYS, DELIVERY_DAYS } from './sql/days.ts'
export { countDeliveryBacklog, deleteDeliveriesOfEnvironment, enqueueDeliveries } from './sql/delivery.ts'
export type { DeliveryFilter } from './sql/history.ts'
