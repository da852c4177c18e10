import { execute, query, queryOne, type Tx } from '../database.ts'
import type { LeaseKey } from './queue-statements.ts'

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
  /** Not heard of within the time the statement was given. */
  readonly isLost: boolean
  /** Leases that name it as their holder. */
  readonly runningCount: number
  readonly registeredAt: Date
  readonly lastSeenAt: Date
}

/** A daemon to be stored. */
export type NewDaemon = Pick<DaemonRecord, 'id' | 'environmentId' | 'label' | 'groupKey' | 'regions' | 'version'>

/** What its claims go by. */
export type ActiveDaemon = Pick<DaemonRecord, 'id' | 'groupKey' | 'regions' | 'isDraining'>

/** A lease, and how often its run has been taken up. */
export interface ActiveLease extends LeaseKey {
  readonly attempt: number
}

/** Stores a daemon. */
export async function insertDaemon(tx: Tx, { id, environmentId, ...rest }: NewDaemon): Promise<void> {
  const sql = 'insert into daemon (environment_id, id, label, group_key, regions, version) values (?, ?, ?, ?, ?, ?)'
  await execute(tx, sql, [environmentId, id, rest.label, rest.groupKey, rest.regions, rest.version])
}

/** Notes that a daemon lives, and whether it drains when that is known; undefined when the environment has no such daemon. */
export async function touchDaemon(
  tx: Tx,
  environmentId: string,
  id: string,
  isDraining: boolean | null,
): Promise<ActiveDaemon | undefined> {
  return await queryOne(
    tx,
    `update daemon set last_seen_at = now(), is_draining = coalesce(?, is_draining) where environment_id = ? and id = ?
     returning id, group_key as "groupKey", regions, is_draining as "isDraining"`,
    [isDraining, environmentId, id],
  )
}

/** Those of the daemons that take no more runs, or are not known any more. Rides on the primary key. */
export async function findDraining(
  tx: Tx,
  daemons: readonly Pick<DaemonRecord, 'environmentId' | 'id'>[],
): Promise<readonly string[]> {
  const found = await query<{ readonly id: string }>(
    tx,
    `select v.id from unnest(?::uuid[], ?::uuid[]) as v (environment_id, id)
       left join daemon d on d.environment_id = v.environment_id and d.id = v.id
     where d.is_draining is not false`,
    [daemons.map(({ environmentId }) => environmentId), daemons.map(({ id }) => id)],
  )
  return found.map(({ id }) => id)
}

/**
 * Daemons of the environment below `before` (all when undefined), newest first. Rides on the primary key; leases, which are
 * few, are read whole.
 */
export async function selectDaemons(
  tx: Tx,
  environmentId: string,
  filter: { readonly groupKey?: string | undefined },
  lostAfterMs: number,
  before: string | undefined,
  limit: number,
): Promise<readonly DaemonRecord[]> {
  return await query(
    tx,
    `with held as (select holder, count(*) as leases from run_lease where environment_id = ? group by holder)
     select d.id, d.environment_id as "environmentId", d.label, d.group_key as "groupKey", d.regions, d.version,
       d.is_draining as "isDraining", d.registered_at as "registeredAt", d.last_seen_at as "lastSeenAt",
       d.last_seen_at < now() - make_interval(secs => ?) as "isLost", coalesce(held.leases, 0) as "runningCount"
     from daemon d left join held on held.holder = d.id::text
     where d.environment_id = ? and (?::text is null or d.group_key = ?) and (?::uuid is null or d.id < ?)
     order by d.id desc limit ?`,
    [
      environmentId,
      lostAfterMs / 1000,
      environmentId,
      filter.groupKey ?? null,
      filter.groupKey ?? null,
      before ?? null,
      before ?? null,
      limit,
    ],
  )
}

/** Forgets daemons that were not heard of for so long; returns how many, at most `limit`. */
export async function deleteStaleDaemons(tx: Tx, unheardMs: number, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from daemon where ctid = any(array(
       select ctid from daemon where last_seen_at < now() - make_interval(secs => ?) limit ?))`,
    [unheardMs / 1000, limit],
  )
}

/** Those of the leases that are still the given ones and of the environment. Rides on the primary key. */
export async function findActiveLeases(
  tx: Tx,
  environmentId: string,
  leases: readonly LeaseKey[],
): Promise<readonly ActiveLease[]> {
  return await query(
    tx,
    `select l.run_id as id, l.lease_id as "leaseId", l.attempt
     from run_lease l
     where l.run_id = any(?::uuid[]) and l.lease_id = any(?::uuid[]) and l.environment_id = ?`,
    [leases.map(({ id }) => id), leases.map(({ leaseId }) => leaseId), environmentId],
  )
}
