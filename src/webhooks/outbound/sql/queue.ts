import type { QueueTable } from '../../../foundation/queue/index.ts'
import type { DeliveryTrigger } from '../delivery.ts'

/** Queue group of first attempts. */
export const FIRST_GROUP = 'first'
/** Queue group of later attempts, and of deliveries that are recovered: the backlog. */
export const RETRY_GROUP = 'retry'
/** Deliveries of one webhook that all workers hold at once from each queue group. */
export const IN_FLIGHT_PER_WEBHOOK_MAX = 32

/** The queue of deliveries; webhooks take turns. */
export const DELIVERY_QUEUE: QueueTable = {
  waiting: 'delivery_queue',
  lease: 'delivery_lease',
  id: 'delivery_id',
  key: 'webhook_id',
  payload: 'event_id, trigger',
  leasesPerKey: IN_FLIGHT_PER_WEBHOOK_MAX,
  retryGroup: RETRY_GROUP,
  // A delivery that is sent twice has the same id.
  hasVolatileClaims: true,
}

/** What the queue knows of a delivery. */
export interface DeliveryPayload {
  readonly eventId: string
  readonly trigger: DeliveryTrigger
}
