/**
 * Events: the catalog of what the product announces, and the outbox in which it is recorded.
 *
 * Lives here: the table of events, written in the transaction of the change that an event is about. Never here: delivery to
 * webhooks (`webhooks/outbound/`), or what a change of some resource means.
 */

export { appendEvents } from './append-events.ts'
export {
  checkAskedEventTypes,
  checkEventTypes,
  EVENT_TYPES,
  type EventType,
  eventTypesAskedFor,
  eventTypesOf,
  findEventType,
  isAskedFor,
} from './catalog.ts'
export { examplePayload } from './examples.ts'
export { listEvents } from './list-events.ts'
export { payloadOf } from './payload.ts'
export {
  continueDispatchAfter,
  deleteEventsOfEnvironment,
  EVENT_DAYS,
  type EventFilter,
  type EventRecord,
  expungePayload,
  findEvent,
  findEvents,
  findEventsByRefs,
  finishDispatch,
  listDispatchTurns,
  lockUndispatchedEvents,
  type NewEvent,
  type UndispatchedEvent,
} from './sql.ts'
