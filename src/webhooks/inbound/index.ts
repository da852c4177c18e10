/**
 * Inbound webhooks: what third parties send to the addresses of accounts and installations.
 *
 * Lives here: receiving a request (transform, handshake, signature, one insert, answer), and later processing it. Never here:
 * what a signature is (`engine/formats/signature/`), the deliveries that follow (`webhooks/outbound/`), or HTTP (`server/api/http/`).
 */

export { createReceiver } from './create-receiver.ts'
export { createInboundWorker, type InboundWorkerDeps } from './create-worker.ts'
export { type HeaderList, INBOUND_STATES } from './inbound-event.ts'
export {
  expungeInboundEvent,
  getInboundEvent,
  type InboundEventDetail,
  type InboundEventSummary,
  listInboundEvents,
} from './read-events.ts'
export type { InboundRequest } from './receive.ts'
export type { ObserveInbound } from './rejection.ts'
export { INBOUND_REPLAY_TASK, replayInboundEvent } from './replay.ts'
export type { SourceAddress } from './source.ts'
export type { InboundFilter } from './sql/history.ts'
export { INBOUND_CONTENT_DAYS, INBOUND_HISTORY_DAYS } from './sql/inbound-event.ts'
export { deleteInboundOfEnvironment } from './sql/maintenance.ts'
