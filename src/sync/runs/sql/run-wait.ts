import { type Db, execute, query } from '../../../foundation/database/index.ts'
import type { LeaseKey } from '../../../foundation/queue/index.ts'

/** What a waiting run waits for, as far as the tables say. */
export interface RunWaitRow {
  readonly id: string
  readonly region: string
  readonly group: string
  /** When it becomes available, or ends the wait that its holder recorded; null: it is available. */
  readonly notBefore: Date | null
  /** The leased run of its account. */
  readonly runningRunId: string | null
  /** A worker, or a daemon of its group, is alive and takes runs of its region. */
  readonly hasTaker: boolean
}

/**
 * What those of the runs that wait are waiting for, in any order: queued ones, and leased ones whose holder waits.
 *
 * One statement: per run the primary key of the queue and the account index of the leases, and a scan of the workers or of
 * the daemons of its environment, which are few. now() is rounded like the queue's column: what was enqueued in this
 * transaction is available.
 *
 * @param queued runs to look for in the queue
 * @param running runs to look for among the leases
 * @param groupPrefix of the queue group of a daemon group: `<prefix><environment>:<key>`
 * @param lostAfterMs a worker or daemon that was not heard of for this long does not count
 */
export async function findRunWaits(
  tx: Db,
  queued: readonly string[],
  running: readonly string[],
  webhookGroup: string,
  groupPrefix: string,
  lostAfterMs: number,
): Promise<readonly RunWaitRow[]> {
  return await query(
    tx,
    `with clock as (select now()::timestamptz(3) as at, make_interval(secs => :lostAfterSeconds) as lost_after)
     select q.run_id as id, q.region, q.queue_group as "group",
       case when q.available_at > clock.at then q.available_at end as not_before, l.run_id as running_run_id,
       case when q.queue_group = :webhookGroup then exists (
         select from worker w where w.last_seen_at > clock.at - clock.lost_after
           and (w.regions = '{}' or q.region = any(w.regions))
       ) else exists (
         select from daemon d where d.environment_id = q.environment_id and not d.is_draining
           and q.queue_group = :groupPrefix || d.environment_id || ':' || d.group_key
           and d.last_seen_at > clock.at - clock.lost_after and (d.regions = '{}' or q.region = any(d.regions))
       ) end as has_taker
     from clock, run_queue q left join run_lease l on l.integrated_account_id = q.integrated_account_id
     where q.run_id = any(:queued::uuid[])
     union all
     select l.run_id, l.region, l.queue_group, l.waiting_until, null, true
     from clock, run_lease l where l.run_id = any(:running::uuid[]) and l.waiting_until > clock.at`,
    { lostAfterSeconds: lostAfterMs / 1000, webhookGroup, groupPrefix, queued, running },
  )
}

/**
 * Records that the holder of a lease waits for the next `ms`; without effect when the lease is not the given one any more. Rides
 * on the primary key. No save clears it: pages read before are delivered meanwhile.
 */
export async function recordRunWait(tx: Db, { id, leaseId }: LeaseKey, ms: number): Promise<void> {
  await execute(
    tx,
    `update run_lease set waiting_until = now() + make_interval(secs => :seconds)
     where run_id = :id and lease_id = :leaseId`,
    { id, leaseId, seconds: ms / 1000 },
  )
}

/** Workers that were not heard of for this long are deleted by the others. */
const WORKER_RETENTION = `interval '1 hour'`

/**
 * Records that a worker is alive, and deletes those that are not. Reads the whole table, which has a row per worker.
 *
 * @param regions whose runs it takes; empty: all
 */
export async function touchWorker(tx: Db, id: string, regions: readonly string[]): Promise<void> {
  await execute(
    tx,
    `with gone as (delete from worker where last_seen_at < now() - ${WORKER_RETENTION} and id <> :id)
     insert into worker (id, regions, last_seen_at) values (:id, :regions::text[], now())
     on conflict (id) do update set regions = excluded.regions, last_seen_at = excluded.last_seen_at`,
    { id, regions },
  )
}

/** Deletes a worker that takes no more runs. */
export async function deleteWorker(tx: Db, id: string): Promise<void> {
  await tx('worker').where({ id }).delete()
}
