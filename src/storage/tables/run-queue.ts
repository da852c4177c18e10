import { execute, queryOne, type Tx } from '../database.ts'
import type { LeaseKey, NowOverride } from './queue-statements.ts'
import { queueSql } from './queue-table.ts'

/** What a run carries through the queue. */
export type RunCarried = {
  readonly scheduledFor: Date
  readonly triggerId: string | null
}

/** The queue of sync runs. An account is an exclusive flow: the unique index run_lease_account allows it one running run. */
export const RUN_QUEUE = queueSql<RunCarried>({
  waiting: 'run_queue',
  lease: 'run_lease',
  item: 'run_id',
  flow: 'integrated_account_id',
  carried: [
    { column: 'scheduled_for', field: 'scheduledFor', type: 'timestamptz' },
    { column: 'trigger_id', field: 'triggerId', type: 'uuid' },
  ],
})

/** What a request to stop found. */
export interface StopFound {
  /** Set when the run waited and has left the queue. */
  readonly scheduledFor: Date | null
  readonly triggerId: string | null
  /** The run is held; its holder learns of the request at the next heartbeat. */
  readonly isHeld: boolean
}

/**
 * Takes a waiting run out of the queue, or notes on its lease that it should stop (the first request counts).
 *
 * Finds neither when a claim moves the run at this very moment: ask again.
 */
export async function requestStop(
  tx: Tx,
  environmentId: string,
  runId: string,
  now: NowOverride,
): Promise<StopFound | undefined> {
  return await queryOne(
    tx,
    `with waiting as (
       delete from run_queue where run_id = ? and environment_id = ? returning scheduled_for, trigger_id
     ), held as (
       update run_lease set stop_requested_at = coalesce(stop_requested_at, ?::timestamptz, now())
       where run_id = ? and environment_id = ? returning run_id
     )
     select scheduled_for as "scheduledFor", trigger_id as "triggerId", false as "isHeld" from waiting
     union all select null, null, true from held`,
    [runId, environmentId, now, runId, environmentId],
  )
}

/** Ends leases without settling anything, for runs whose record is gone. */
export async function dropLeases(tx: Tx, leases: readonly LeaseKey[]): Promise<void> {
  await execute(
    tx,
    `delete from run_lease l using unnest(?::uuid[], ?::uuid[]) as v (run_id, lease_id)
     where l.run_id = v.run_id and l.lease_id = v.lease_id`,
    [leases.map(({ id }) => id), leases.map(({ leaseId }) => leaseId)],
  )
}
