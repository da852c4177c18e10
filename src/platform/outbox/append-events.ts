import { newId } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { EventType } from './catalog.ts'
import { limitPayload } from './limit-payload.ts'
import { insertEvents } from './sql.ts'

/** An event to be recorded. */
export interface NewEvent {
  readonly environmentId: string
  readonly type: EventType
  /**
   * What happened to the subject, in the names of the contract (snake_case): the message that names the type in its option
   * `event_types`; never a secret. Stored in at most 256 KiB, see `limitPayload`.
   */
  readonly payload: JsonObject
  /** Id (UUID) of the resource that the event is about: the one named before the colon of the type. */
  readonly subjectId?: string | null | undefined
  /** Id of the account that it concerns, by which events are filtered. */
  readonly integratedAccountId?: string | null | undefined
  /** UUIDv7; for an event whose id must be known before it is recorded. Default: a new one. */
  readonly id?: string | undefined
  /** The webhook that gets no delivery of it: the destination of a run hears of the run in order, from the run itself. */
  readonly exceptWebhookId?: string | null | undefined
  /** An example: it is not dispatched, and says that it is a test. Default: false. */
  readonly isTest?: boolean | undefined
}

/**
 * Records events in the outbox and marks them for dispatch to webhooks, in one statement. `tx` is the transaction of the
 * change that they are about, so that an event exists exactly when its change does. Ids are UUIDv7 in the order given.
 */
export async function appendEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  if (events.length > 0)
    await insertEvents(
      tx,
      events.map(({ id = newId(), payload, ...event }) => ({ id, ...event, payload: limitPayload(payload) })),
    )
}
