/**
 * Deliveries: each event that a webhook asks for, sent until the receiver has accepted it, the attempts are exhausted, or the
 * webhook is gone. event → deliveries → attempts.
 *
 * Never here: which webhook asks for an event, how a request is signed (`webhooks/`), what an event means (`events/`), and the
 * events of a run to its own destination, which the run sends in order (`syncs/`).
 */

export type { DeliveryState, DeliveryTrigger, NewDelivery } from './delivery.ts'
export { enqueueDeliveries } from './enqueue.ts'
