/**
 * Inbound webhooks: what third parties send to the addresses of accounts and installations.
 *
 * Lives here: receiving a request (transform, handshake, signature, one insert, answer), and later processing it. Never here:
 * what a signature is (`formats/signature/`), the deliveries that follow (`deliveries/`), or HTTP (`api/http/`).
 */

export { applyContextUpdate, type ContextUpdateDeps } from './context-update.ts'
export { createReceiver } from './create-receiver.ts'
export { createInboundWorker, type InboundWorker } from './create-worker.ts'
export { type ExpressionDeps, evaluateHandshake, type Handshake, transformPayload } from './handshake.ts'
export {
  type HeaderList,
  INBOUND_STATES,
  type InboundContent,
  type InboundEventRecord,
  type InboundItemRecord,
  type InboundState,
  type SignatureState,
  type SourceKind,
} from './inbound-event.ts'
export { expressionInput, type ParsedRequest, parseRequest } from './parsed-request.ts'
export {
  expungeInboundEvent,
  getInboundEvent,
  type InboundEventDetail,
  type InboundEventSummary,
  listInboundEvents,
} from './read-events.ts'
export type { InboundRequest } from './receive.ts'
export { INBOUND_REPLAY_TASK, replayInboundEvent } from './replay.ts'
export { createSourceReader, type InboundSource, type SourceAddress, type SourceReader } from './source.ts'
export type { InboundFilter } from './sql/history.ts'
export {
  findInboundContent,
  findInboundEvent,
  INBOUND_CONTENT_DAYS,
  INBOUND_EVENT_COLUMNS,
  INBOUND_HISTORY_DAYS,
} from './sql/inbound-event.ts'
export { deleteInboundOfEnvironment } from './sql/maintenance.ts'
export { INBOUND_QUEUE, INBOUND_QUEUE_GROUPS, type InboundQueuePayload } from './sql/queue.ts'
