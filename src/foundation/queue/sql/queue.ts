import { type Db, execute, jsonb, query, type Tx } from '../../database/database.ts'
import { rowSet } from '../../database/row-set.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { Lease } from './due.ts'

/**
 * The two tables in which one kind of work queues: what waits, and what is leased. Both have the columns `environment_id`,
 * `region` and `queue_group` beside those named here. What became of an item is recorded elsewhere, by the owner of the work.
 *
 * All statements run in READ COMMITTED, one round trip each. Wherever one may wait for more than one row it takes them in
 * one order (items, or concurrency keys), so that two of them never deadlock. All commit synchronously: a lease that its
 * holder knows of survives a crash of the database, so that no item has two holders and no attempt number is given twice.
 *
 * Leases are looked up with `= any`, not by a join: a plan made while the table is empty stays for a while, and a join would
 * then read all of it once per item. Measured with 50 of 5 000 leases: 15 ms instead of 170 ms, and 0.4 ms either way with a
 * plan for the table as it is.
 *
 * Parameters are read through subqueries, which hide their values from the planner: a plan for the values of a small batch
 * looks cheaper than the generic plan, so that the statement would be planned anew on every call.
 */
export interface QueueTable {
  /** Table with one row per waiting item. */
  readonly waiting: string
  /** Table with one row per leased item. */
  readonly lease: string
  /** Column with the item's id. */
  readonly id: string
  /**
   * Column with the concurrency key, such as the account: claims are fair between its values. A unique index on it in the
   * lease table allows one lease per value.
   */
  readonly key: string
  /** Further columns, which are copied from one table to the other, and returned by claims and settlements. */
  readonly payload: string
  /** SQL: what else holds of a row `q` of `waiting` that `claimItems` may take. */
  readonly condition?: string
  /**
   * Leases that one concurrency key may have in each queue group; two claims at the same moment may exceed it. With it keys
   * take turns (`claimRoundRobin`), in each the item that is available first; the waiting table has an index on queue_group,
   * key, available_at and id, the lease table one on key and queue_group, and neither has the columns `region` and `fair_rank`.
   */
  readonly leasesPerKey?: number
  /**
   * Whether claims by turns need not survive a crash of the database: then an item may have two holders after one, of which one
   * can settle. For work whose repetition is harmless.
   */
  readonly hasVolatileClaims?: boolean
  /** Queue group in which an item waits after an attempt that counts. Absent: its own. */
  readonly retryGroup?: string
}

/** Names a lease. */
export type LeaseKey = Lease<{ readonly id: string }>

/** What a holder asks for. */
export interface LeaseRequest {
  readonly group: string
  /** Only items of these regions; null: of any. */
  readonly regions: readonly string[] | null
  /** One id per item wanted at most. */
  readonly leaseIds: readonly string[]
  /** Items of the group that all holders together may hold; two claims at the same moment may exceed it. Null: any number. */
  readonly heldMax: number | null
  readonly holder: string
  readonly leaseMs: number
}

/** An item as its queue hands it out. */
export interface QueuedItem {
  readonly id: string
  readonly environmentId: string
  readonly concurrencyKey: string
  /** From 1. */
  readonly attempt: number
  /** Attempts up to this one do not count towards the limit. */
  readonly attemptBase: number
  readonly expiresAt: Date
}

/** A lease that was renewed. */
export interface RenewedLease extends LeaseKey {
  readonly expiresAt: Date
  readonly isStopRequested: boolean
}

/** What a leased item becomes. */
export interface LeaseSettlement extends LeaseKey {
  readonly status: string
  readonly error: Json
  /** Attempts that count so far. */
  readonly attempt: number
  /** Delay until the item is available again; null: it has ended. */
  readonly delayMs: number | null
}

/** What a leased item has become. */
export interface SettledItem extends LeaseKey {
  readonly environmentId: string
  readonly concurrencyKey: string
  /** `stopped` also for an item that was to wait again although a stop had been requested. */
  readonly status: string
  readonly error: Json
  /** Attempts that count so far. */
  readonly attempt: number
  /** False: it waits again. */
  readonly isOver: boolean
  /** From when on it waits again; null when it is over. */
  readonly availableAt: Date | null
  /** The holder was asked to stop before it ended the lease. */
  readonly isStopRequested: boolean
}

/** A lease that expired, or whose holder did not stop in time. */
export interface ExpiredLease extends LeaseKey {
  readonly attempt: number
  readonly attemptBase: number
  readonly isStopRequested: boolean
}

/** How many items wait in a queue group of an environment. */
export interface WaitingCount {
  readonly environmentId: string
  readonly group: string
  readonly waiting: number
}

/** Milliseconds of the fair clock that one waiting item puts its concurrency key behind the others. */
const KEY_WEIGHT_MS = 1_000
/** Behind this many waiting items of one key, order no longer matters. */
const KEY_BACKLOG_MAX = 1_000

/**
 * Items one claim takes at most. Written out, because a limit that is a parameter is planned as a tenth of the table, for
 * which the planner would read and sort all of it.
 */
const CLAIM_MAX = 1_000

/**
 * SQL: puts the rows of a CTE or table `source` into the queue, ranked behind what their concurrency key has waiting. The rows
 * have the columns of an item, `available_at` (null: now) and `attempt` (attempts that do not count towards the limit).
 *
 * One look at the index for all keys together is several times cheaper than one per item. It is joined by a full join: each
 * of its keys is one of the items', so that a left join would give the same; but that may be planned as a nested loop,
 * because few rows are expected of an empty queue, and then compares 500 items with 500 keys: 25 µs an item more.
 */
export function insertWaitingSql(table: QueueTable, source: string): string {
  // Cut to the milliseconds of the column: rounded, it could be in the future, and the claim that follows would find nothing.
  const availableAt = `coalesce(v.available_at, date_trunc('milliseconds', now()))`
  if (table.leasesPerKey !== undefined)
    return `insert into ${table.waiting} (${itemColumns(table)}, available_at, attempt, attempt_base)
      select ${itemColumns(table)}, ${availableAt}, v.attempt, v.attempt from ${source} v`
  return `insert into ${table.waiting} (${itemColumns(table)}, available_at, attempt, attempt_base, fair_rank)
    with ${aheadSql(table, source)}
    select ${itemColumns(table)}, ${availableAt}, v.attempt, v.attempt,
      ${fairClock(availableAt)} + ${KEY_WEIGHT_MS} * coalesce(ahead.items, 0)
        + ${KEY_WEIGHT_MS} * row_number() over (partition by v.${table.key} order by v.${table.id})
    from ${source} v full join ahead on ahead.of_key = v.${table.key}`
}

/** Puts items into the queue, in the caller's transaction; each has the columns that `insertWaitingSql` names. */
export async function insertWaiting(tx: Db, table: QueueTable, items: readonly JsonObject[]): Promise<void> {
  await execute(
    tx,
    `with given as materialized (select * from jsonb_populate_recordset(null::${table.waiting}, :items::jsonb))
     ${insertWaitingSql(table, 'given')}`,
    { items: jsonb(items) },
  )
}

/**
 * Leases the lowest-ranked available items whose concurrency key is free.
 *
 * Rides on the claim index of the group. Rows another holder is taking are passed over; two items of one key are never both
 * leased where the lease table has a unique index on it.
 */
export async function claimItems<Payload>(
  tx: Db,
  table: QueueTable,
  request: LeaseRequest,
): Promise<readonly Lease<QueuedItem & Payload>[]> {
  const { group, regions, leaseIds, heldMax, holder, leaseMs } = request
  const { waiting, lease, id, key, payload, condition = 'true' } = table
  return await query(
    tx,
    `with candidate as materialized (
       select c.* from (
         select q.* from ${waiting} q
         where q.queue_group = (select :group::text) and q.available_at <= (select now())
           ${regions === null ? '' : 'and q.region = any((select :regions::text[])::text[])'}
           and not exists (select from ${lease} l where l.${key} = q.${key}) and ${condition}
         order by q.fair_rank, q.${id}
         limit ${CLAIM_MAX}
         for update of q skip locked
       ) c
       limit least((select :limit::bigint), case when (select :heldMax::bigint) is not null
         then greatest(0, (select :heldMax::bigint) - (select count(*) from ${lease} l where l.queue_group = (select :group::text))) end)
     ),
     numbered as (select c.*, row_number() over (order by c.fair_rank, c.${id}) as slot from candidate c),
     leased as (
       insert into ${lease} (${itemColumns(table)}, lease_id, holder, attempt, attempt_base, claimed_at, expires_at)
       select ${itemColumns(table)}, ((select :leaseIds::uuid[]))[slot], :holder, attempt + 1, attempt_base, now(), now() + make_interval(secs => :leaseSeconds)
       from numbered order by ${key}, slot
       on conflict do nothing
       returning *
     ),
     taken as (delete from ${waiting} q where q.${id} = any(array(select ${id} from leased)))
     select ${id} as id, environment_id, ${key} as concurrency_key, lease_id, attempt,
       attempt_base, expires_at, ${payload}
     from leased`,
    { group, regions, limit: leaseIds.length, heldMax, leaseIds, holder, leaseSeconds: leaseMs / 1000 },
  )
}

/** Renews the leases that are still the given ones, and returns those. */
export async function renewLeases(
  tx: Db,
  { lease, id }: QueueTable,
  held: readonly LeaseKey[],
  leaseMs: number,
): Promise<readonly RenewedLease[]> {
  return await query(
    tx,
    `with held as (
       select l.${id} from ${lease} l where l.${id} = any((select :ids::uuid[])::uuid[])
         and l.lease_id = any((select :leaseIds::uuid[])::uuid[])
       order by l.${id} for update of l
     )
     update ${lease} l set expires_at = now() + make_interval(secs => :leaseSeconds)
     where l.${id} = any(array(select h.${id} from held h))
     returning l.${id} as id, l.lease_id, l.expires_at, l.stop_requested_at is not null as is_stop_requested`,
    { ids: held.map((each) => each.id), leaseIds: held.map(({ leaseId }) => leaseId), leaseSeconds: leaseMs / 1000 },
  )
}

const SETTLEMENTS = rowSet(
  `id uuid, lease_id uuid, status text, error jsonb, attempt integer, delay_ms double precision`,
)

/**
 * Ends the leases that are still the given ones, makes wait what is to wait again, and returns what they were leases on.
 *
 * An item with a delay gives its turn away: everything that waits with its concurrency key goes first.
 */
export async function settleLeases<Payload>(
  tx: Db,
  table: QueueTable,
  settlements: readonly LeaseSettlement[],
): Promise<readonly (SettledItem & Payload)[]> {
  const { lease, id, key, payload } = table
  return await query(
    tx,
    `with v as materialized (
       select * from ${SETTLEMENTS.rows}
     ),
     held as materialized (
       select l.* from ${lease} l
       where l.${id} = any(array(select v.id from v)) and l.lease_id = any(array(select v.lease_id from v))
       order by l.${id} for update of l
     ),
     settled as materialized (
       select ${itemColumns(table, 'l')}, l.lease_id, v.error, v.attempt, l.attempt_base,
         l.stop_requested_at is not null as is_stop_requested,
         case when l.stop_requested_at is not null and v.delay_ms is not null then 'stopped' else v.status end as status,
         case when l.stop_requested_at is null then now() + make_interval(secs => v.delay_ms / 1000.0) end as available_at
       from held l join v on l.${id} = v.id and l.lease_id = v.lease_id
     ),
     ended as (delete from ${lease} l where l.${id} = any(array(select s.${id} from settled s))),
     requeued as (select * from settled where available_at is not null),
     ${requeueSql(table, 'requeued')}
     select ${id} as id, lease_id, environment_id, ${key} as concurrency_key, status, error, attempt,
       available_at is null as is_over, available_at, is_stop_requested, ${payload}
     from settled`,
    SETTLEMENTS.of(settlements),
  )
}

/** By leased item, the attempts that do not count towards the limit; they grow while progress is made. */
export async function findAttemptBases(
  tx: Db,
  { lease, id }: QueueTable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const found = await query<{ readonly id: string; readonly attemptBase: number }>(
    tx,
    `select l.${id} as id, l.attempt_base from ${lease} l where l.${id} = any(:ids)`,
    { ids },
  )
  return new Map(found.map(({ id, attemptBase }) => [id, attemptBase]))
}

/** Locks leases past their end, or asked to stop longer ago than the grace; passes over those being settled or renewed. */
export async function lockExpiredLeases(
  tx: Tx,
  { lease, id }: QueueTable,
  stopGraceMs: number,
  limit: number,
): Promise<readonly ExpiredLease[]> {
  return await query(
    tx,
    `select l.${id} as id, l.lease_id, l.attempt, l.attempt_base, l.stop_requested_at is not null as is_stop_requested
     from ${lease} l
     where l.expires_at <= now() or l.stop_requested_at <= now() - make_interval(secs => :graceSeconds)
     order by l.${id} limit :limit for update skip locked`,
    { graceSeconds: stopGraceMs / 1000, limit },
  )
}

/** Counts what waits in each of the groups, up to `atMost`. Rides on the group index. */
export async function countWaiting(
  tx: Db,
  { waiting }: QueueTable,
  groups: readonly { readonly environmentId: string; readonly group: string }[],
  atMost: number,
): Promise<readonly WaitingCount[]> {
  return await query(
    tx,
    `select v.environment_id, v.queue_group as "group", (
         select count(*) from (
           select from ${waiting} q where q.environment_id = v.environment_id and q.queue_group = v.queue_group limit :atMost
         ) waiting) as waiting
     from unnest(:environmentIds::uuid[], :groups::text[]) as v (environment_id, queue_group)`,
    {
      atMost,
      environmentIds: groups.map(({ environmentId }) => environmentId),
      groups: groups.map(({ group }) => group),
    },
  )
}

/** SQL: CTEs that make the settled items of the CTE `source` wait again. */
function requeueSql(table: QueueTable, source: string): string {
  const { waiting, key, retryGroup, leasesPerKey } = table
  const columns = `insert into ${waiting} (${itemColumns(table)}, available_at, attempt, attempt_base`
  if (leasesPerKey !== undefined) {
    const group =
      retryGroup === undefined ? 'queue_group' : `case when s.attempt > 0 then '${retryGroup}' else queue_group end`
    return `waits as (
      ${columns}) select ${itemColumns(table).replace('queue_group', group)}, s.available_at, s.attempt, s.attempt_base from ${source} s
    )`
  }
  return `${aheadSql(table, source, ', max(q.fair_rank) as last_rank')},
    waits as (
      ${columns}, fair_rank)
      select ${itemColumns(table)}, s.available_at, s.attempt, s.attempt_base,
        greatest(${fairClock('s.available_at')} + ${KEY_WEIGHT_MS} * coalesce(ahead.items, 0),
          case when s.available_at > now() then ahead.last_rank + ${KEY_WEIGHT_MS} end)
      from ${source} s full join ahead on ahead.of_key = s.${key}
    )`
}

/** SQL: the columns that an item has in both tables. */
export function itemColumns({ id, key, payload, leasesPerKey }: QueueTable, alias?: string): string {
  const columns = `${id}, ${key}, environment_id, ${leasesPerKey === undefined ? 'region, ' : ''}queue_group, ${payload}`
  return alias === undefined ? columns : columns.replaceAll(/\w+/g, `${alias}.$&`)
}

/** SQL: a CTE with how many items wait ahead of those of `source`, by concurrency key. */
function aheadSql({ waiting, key }: QueueTable, source: string, more = ''): string {
  return `ahead as materialized (
    select q.${key} as of_key, least(count(*), ${KEY_BACKLOG_MAX}) as items${more} from ${waiting} q
    where q.${key} = any(array(select ${key} from ${source})) group by q.${key}
  )`
}

/** SQL: a moment as milliseconds of the clock in which ranks are counted. */
function fairClock(at: string): string {
  return `(extract(epoch from ${at}) * 1000)::bigint`
}

const BACKLOG_STATES = ['ready', 'later', 'held'] as const

/** How many items of a queue group, or of a kind of groups, wait or are leased. */
export interface Backlog {
  readonly group: string
  readonly state: (typeof BACKLOG_STATES)[number]
  readonly count: number
}

/**
 * The backlog over all environments, zeros included. Reads the whole queue: some 0.1 s for a million items.
 *
 * @param kind SQL: the kind of the group of a row
 */
export async function countBacklog(
  tx: Db,
  { waiting, lease }: QueueTable,
  groups: readonly string[],
  kind = 'queue_group',
): Promise<readonly Backlog[]> {
  const found = await query<Backlog>(
    tx,
    `select ${kind} as group, case when available_at <= now() then 'ready' else 'later' end as state, count(*) as count
     from ${waiting} group by 1, 2
     union all select ${kind}, 'held', count(*) from ${lease} group by 1`,
  )
  const counts = new Map(found.map(({ group, state, count }) => [`${group} ${state}`, count]))
  return groups.flatMap((group) =>
    BACKLOG_STATES.map((state) => ({ group, state, count: counts.get(`${group} ${state}`) ?? 0 })),
  )
}
