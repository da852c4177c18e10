import { type Db, execute, queryOne, rowSet } from '../../../foundation/database/index.ts'
import { type Backlog, countBacklog, type LeaseKey, type QueueTable } from '../../../foundation/queue/index.ts'
import { isKeptSql } from '../../../platform/accounts/index.ts'

/**
 * The queue of sync runs. The unique index run_lease_account allows an account one running run. Those of an account whose deletion
 * goes on wait for its end.
 */
export const RUN_QUEUE: QueueTable = {
  waiting: 'run_queue',
  lease: 'run_lease',
  id: 'run_id',
  key: 'integrated_account_id',
  payload: 'scheduled_for, trigger_id',
  condition: isKeptSql('q', 'integrated_account_id'),
}

/** The payload of a run in its queue. */
export interface RunPayload {
  readonly scheduledFor: Date
  readonly triggerId: string | null
}

/** What a request to stop a run found. */
export interface StopFound {
  /** Set when the run waited and has left the queue. */
  readonly scheduledFor: Date | null
  readonly triggerId: string | null
  /** The run is leased; its holder learns of the request with its next heartbeat. */
  readonly isHeld: boolean
}

/**
 * Takes a waiting run out of the queue, or marks its lease as asked to stop (the first request counts).
 *
 * Finds neither while a claim moves the run: ask again. Rides on both primary keys.
 */
export async function requestStop(tx: Db, environmentId: string, runId: string): Promise<StopFound | undefined> {
  return await queryOne(
    tx,
    `with waiting as (
       delete from run_queue where run_id = :runId and environment_id = :environmentId
       returning scheduled_for, trigger_id
     ), held as (
       update run_lease set stop_requested_at = coalesce(stop_requested_at, now())
       where run_id = :runId and environment_id = :environmentId returning run_id
     )
     select scheduled_for, trigger_id, false as is_held from waiting
     union all select null, null, true from held`,
    { runId, environmentId },
  )
}

const LEASES = rowSet('id uuid, lease_id uuid')

/** Deletes leases without settling anything, for runs whose record was dropped. */
export async function dropLeases(tx: Db, leases: readonly LeaseKey[]): Promise<void> {
  await execute(
    tx,
    `delete from run_lease l using ${LEASES.rows} where l.run_id = v.id and l.lease_id = v.lease_id`,
    LEASES.of(leases),
  )
}

/** The backlog of runs by kind of destination, over all environments. */
export async function countRunBacklog(tx: Db): Promise<readonly Backlog[]> {
  const kind = `case when queue_group = 'webhook' then 'webhook' else 'daemon' end`
  return await countBacklog(tx, RUN_QUEUE, ['webhook', 'daemon'], kind)
}
