import { type Db, execute, OWNED, query, queryOne } from '../../foundation/database/index.ts'
import type { LeaseKey } from '../../foundation/queue/index.ts'

/** A process that executes the runs of a group outside the service. */
export interface DaemonRecord {
  readonly id: string
  readonly environmentId: string
  readonly label: string
  readonly groupKey: string
  /** Empty: all. */
  readonly regions: readonly string[]
  readonly version: string
  readonly isDraining: boolean
  /** Not seen within the time given to the statement. */
  readonly isLost: boolean
  /** Leases it holds. */
  readonly runningCount: number
  readonly registeredAt: Date
  readonly lastSeenAt: Date
}

/** A daemon to be inserted. */
export type NewDaemon = Pick<DaemonRecord, 'id' | 'environmentId' | 'label' | 'groupKey' | 'regions' | 'version'>

/** What a claim needs of a daemon. */
export type ActiveDaemon = Pick<DaemonRecord, 'id' | 'groupKey' | 'regions' | 'isDraining'>

/** A lease with the attempt and account of its run. */
export interface ActiveLease extends LeaseKey {
  readonly attempt: number
  readonly integratedAccountId: string
}

/** Inserts a daemon. */
export async function insertDaemon(tx: Db, { id, environmentId, ...rest }: NewDaemon): Promise<void> {
  const { label, groupKey, regions, version } = rest
  await tx('daemon').insert({ environment_id: environmentId, id, label, group_key: groupKey, regions, version })
}

/**
 * Updates when the daemon was last seen, and whether it drains unless `isDraining` is null. Uses the primary key.
 *
 * @returns undefined when the environment has no such daemon
 */
export async function touchDaemon(
  tx: Db,
  environmentId: string,
  id: string,
  isDraining: boolean | null,
): Promise<ActiveDaemon | undefined> {
  return await queryOne(
    tx,
    `update daemon set last_seen_at = now(), is_draining = coalesce(:isDraining, is_draining)
     where environment_id = :environmentId and id = :id
     returning id, group_key, regions, is_draining`,
    { environmentId, id, isDraining },
  )
}

/** Ids of those daemons that drain or do not exist any more. Uses the primary key. */
export async function findDraining(
  tx: Db,
  daemons: readonly Pick<DaemonRecord, 'environmentId' | 'id'>[],
): Promise<readonly string[]> {
  const found = await query<{ readonly id: string }>(
    tx,
    `select v.id from ${OWNED.rows}
       left join daemon d on d.environment_id = v.environment_id and d.id = v.id
     where d.is_draining is not false`,
    OWNED.of(daemons),
  )
  return found.map(({ id }) => id)
}

/**
 * Daemons of the environment with ids below `before` (all when undefined), newest first. Uses the primary key; the leases of
 * the environment are few and read completely.
 */
export async function selectDaemons(
  tx: Db,
  environmentId: string,
  filter: { readonly groupKey?: string | undefined },
  lostAfterMs: number,
  before: string | undefined,
  limit: number,
): Promise<readonly DaemonRecord[]> {
  return await query(
    tx,
    `with held as (select holder, count(*) as leases from run_lease where environment_id = :environmentId group by holder)
     select d.id, d.environment_id, d.label, d.group_key, d.regions, d.version,
       d.is_draining, d.registered_at, d.last_seen_at,
       d.last_seen_at < now() - make_interval(secs => :lostAfterSeconds) as is_lost, coalesce(held.leases, 0) as running_count
     from daemon d left join held on held.holder = d.id::text
     where d.environment_id = :environmentId and (:groupKey::text is null or d.group_key = :groupKey)
       and (:before::uuid is null or d.id < :before)
     order by d.id desc limit :limit`,
    {
      environmentId,
      lostAfterSeconds: lostAfterMs / 1000,
      groupKey: filter.groupKey ?? null,
      before: before ?? null,
      limit,
    },
  )
}

/** Deletes daemons that were not seen for so long, at most `limit`. @returns how many */
export async function deleteStaleDaemons(tx: Db, unseenMs: number, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from daemon where ctid = any(array(
       select ctid from daemon where last_seen_at < now() - make_interval(secs => :unseenSeconds) limit :limit))`,
    { unseenSeconds: unseenMs / 1000, limit },
  )
}

/** Those of the leases that still hold and belong to the environment. Uses the primary key. */
export async function findActiveLeases(
  tx: Db,
  environmentId: string,
  leases: readonly LeaseKey[],
): Promise<readonly ActiveLease[]> {
  return await query(
    tx,
    `select l.run_id as id, l.lease_id, l.attempt, l.integrated_account_id
     from run_lease l
     where l.run_id = any(:ids::uuid[]) and l.lease_id = any(:leaseIds::uuid[]) and l.environment_id = :environmentId`,
    { environmentId, ids: leases.map(({ id }) => id), leaseIds: leases.map(({ leaseId }) => leaseId) },
  )
}

/** A daemon group: its daemons and runs, counted. */
export interface DaemonGroupRecord {
  readonly groupKey: string
  /** Daemons that are not lost. */
  readonly daemonCount: number
  readonly runningCount: number
  readonly waitingCount: number
  /** `null`: no run is due. */
  readonly oldestDueAt: Date | null
}

/** A group with daemons that wait for its runs. */
export interface AwaitedGroup {
  readonly group: string
  /** Only runs of these regions; empty: of any. */
  readonly regions: readonly string[]
  /** Counting ends here. */
  readonly atMost: number
}

/** Groups of one environment that are read at most. */
const GROUPS_MAX = 10_000

/**
 * Groups of an environment with daemons or unfinished runs, in the byte order of their keys.
 *
 * Groups with waiting runs are found by a loose index scan over the group index, one step per group and not per run; runs are
 * counted for the groups of the page only.
 *
 * @param prefix of the key in the queue's name of the group
 */
export async function selectDaemonGroups(
  tx: Db,
  environmentId: string,
  prefix: string,
  lostAfterMs: number,
  after: string | undefined,
  limit: number,
): Promise<readonly DaemonGroupRecord[]> {
  return await query(
    tx,
    `with recursive waiting (name) as (
       (select queue_group from run_queue where run_queue.environment_id = :environmentId order by 1 limit 1)
       union all
       select (select q.queue_group from run_queue q
         where q.environment_id = :environmentId and q.queue_group > w.name order by 1 limit 1)
       from waiting w where w.name is not null
     ),
     held as (
       select l.queue_group as name, count(*) as leases from run_lease l
       where l.environment_id = :environmentId group by 1
     ),
     alive as (
       select d.group_key,
         count(*) filter (where d.last_seen_at >= now() - make_interval(secs => :lostAfterSeconds)) as daemons
       from daemon d where d.environment_id = :environmentId group by 1
     ),
     known as (
       select group_key from alive
       union
       select substr(name, length(:prefix::text) + 1)
       from ((select name from waiting limit ${GROUPS_MAX}) union select name from held) named
       where starts_with(name, :prefix::text)
     ),
     page as (
       select group_key, :prefix::text || group_key as name from known
       where :after::text is null or group_key collate "C" > :after order by group_key collate "C" limit :limit
     )
     select p.group_key, coalesce(a.daemons, 0) as daemon_count, coalesce(h.leases, 0) as running_count,
       q.waiting as waiting_count, q.oldest_due_at
     from page p left join alive a on a.group_key = p.group_key left join held h on h.name = p.name
       cross join lateral (
         select count(*) as waiting, min(available_at) filter (where available_at <= now()) as oldest_due_at
         from run_queue where environment_id = :environmentId and queue_group = p.name
       ) q
     order by p.group_key collate "C"`,
    { environmentId, prefix, lostAfterSeconds: lostAfterMs / 1000, after: after ?? null, limit },
  )
}

/**
 * Number of runs that could be claimed now in each of the groups, up to `atMost`: due, and of an account without a running
 * run. In the order of the groups; one statement for any number of them. Uses the claim index.
 */
export async function countClaimable(tx: Db, groups: readonly AwaitedGroup[]): Promise<readonly number[]> {
  const found = await query<{ readonly runs: number }>(
    tx,
    `select (
       select count(*) from (
         select from run_queue q
         where q.queue_group = v.queue_group and q.available_at <= now()
           and (v.regions = '' or q.region = any(string_to_array(v.regions, ',')))
           and not exists (select from run_lease l where l.integrated_account_id = q.integrated_account_id)
         limit v.at_most
       ) claimable) as runs
     from unnest(:groups::text[], :regions::text[], :limits::integer[]) with ordinality as v (queue_group, regions, at_most, place)
     order by v.place`,
    {
      groups: groups.map(({ group }) => group),
      regions: groups.map(({ regions }) => regions.join(',')),
      limits: groups.map(({ atMost }) => atMost),
    },
  )
  return found.map(({ runs }) => runs)
}
