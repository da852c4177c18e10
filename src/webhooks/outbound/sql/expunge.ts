import { type Db, execute } from '../../../foundation/database/index.ts'
import type { DiscardReason } from '../delivery-queue.ts'

/**
 * Discards the deliveries of an event that wait, and takes them from the queue. Uses delivery_of_event.
 */
export async function discardWaiting(tx: Db, environmentId: string, eventId: string): Promise<void> {
  await execute(
    tx,
    `with waiting as (
       delete from delivery_queue where delivery_id in (
         select id from delivery where environment_id = :environmentId and event_id = :eventId and state = 'pending'
       ) returning delivery_id
     )
     update delivery set state = 'discarded', last_error_class = :reason, next_attempt_at = null, finished_at = now()
     where environment_id = :environmentId and id in (select delivery_id from waiting) and state = 'pending'`,
    { environmentId, eventId, reason: 'event_expunged' satisfies DiscardReason },
  )
}

/**
 * Asks the senders of an event's deliveries to stop: what they receive is not stored, and nothing is sent again. Waits for those
 * that are storing an attempt, so that `expungeResponses` finds it. Uses delivery_of_event and the primary key of the leases.
 */
export async function stopSenders(tx: Db, environmentId: string, eventId: string): Promise<void> {
  await execute(
    tx,
    `update delivery_lease set stop_requested_at = coalesce(stop_requested_at, now()) where delivery_id in (
       select id from delivery where environment_id = :environmentId and event_id = :eventId)`,
    { environmentId, eventId },
  )
}

/** Removes what receivers answered to an event. Uses delivery_of_event and the primary key of the attempts. */
export async function expungeResponses(tx: Db, environmentId: string, eventId: string): Promise<void> {
  await execute(
    tx,
    `update delivery_attempt set response_headers = null, response_body = null
     where environment_id = :environmentId and delivery_id in (
       select id from delivery where environment_id = :environmentId and event_id = :eventId)`,
    { environmentId, eventId },
  )
}
