import { newId } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { limitPayload } from './limit-payload.ts'
import { insertEvents, type NewEvent } from './sql.ts'

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
