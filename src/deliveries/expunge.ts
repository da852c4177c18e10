import { notFound } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { type EventRecord, expungePayload, findEvent } from '../events/index.ts'
import { discardWaiting, expungeResponses } from './sql/expunge.ts'

/**
 * Removes the content of an event for good: its payload, and what receivers answered to it. Its deliveries keep their rows;
 * those that wait are discarded. Needs a transaction. Idempotent.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function expungeEvent(tx: Tx, environmentId: string, id: string): Promise<EventRecord> {
  if (!(await expungePayload(tx, environmentId, id))) throw notFound('event', id)
  await discardWaiting(tx, environmentId, id)
  await expungeResponses(tx, environmentId, id)
  const event = await findEvent(tx, environmentId, id)
  if (event === undefined) throw notFound('event', id)
  return event
}
