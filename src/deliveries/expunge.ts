import { notFound } from '../base/index.ts'
import type { Db } from '../database/index.ts'
import { type EventRecord, expungePayload, findEvent } from '../events/index.ts'
import { discardWaiting, expungeResponses, stopSenders } from './sql/expunge.ts'

/**
 * Removes the content of an event for good: its payload, and what receivers answered to it, also what they answer later. Its
 * deliveries keep their rows; those that wait, or would be sent again, are discarded. Needs a transaction. Idempotent.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function expungeEvent(tx: Db, environmentId: string, id: string): Promise<EventRecord> {
  if (!(await expungePayload(tx, environmentId, id))) throw notFound('event', id)
  await discardWaiting(tx, environmentId, id)
  await stopSenders(tx, environmentId, id)
  await expungeResponses(tx, environmentId, id)
  const event = await findEvent(tx, environmentId, id)
  if (event === undefined) throw notFound('event', id)
  return event
}
