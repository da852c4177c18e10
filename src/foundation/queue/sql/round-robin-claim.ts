import { type Db, query } from '../../database/database.ts'
import type { Lease } from './due.ts'
import { itemColumns, type LeaseRequest, type QueuedItem, type QueueTable } from './queue.ts'

/** Leases of a concurrency key that may have other than `leasesPerKey` of them. */
export interface KeyLimit {
  readonly key: string
  /** 0: none. */
  readonly leases: number
}

/** What a holder asks a queue for whose keys take turns. */
export interface RoundRobinRequest extends Omit<LeaseRequest, 'regions' | 'heldMax'> {
  /** Keys are visited in the order of their values, from the first one behind this, then from the lowest; null: from the lowest. */
  readonly afterKey: string | null
  /** For keys that may have another number of leases. */
  readonly keyLimits: readonly KeyLimit[]
}

/** What was leased, and where the next claim begins. */
export interface RoundRobinClaim<Item> {
  readonly leases: readonly Item[]
  /** A key got its share of the claim and may have more items waiting. */
  readonly hasMore: boolean
  /** Every key was visited. */
  readonly isWhole: boolean
  /** The key that was visited last; null when there was none. */
  readonly lastKey: string | null
}

/** When an item became available. */
export interface Availability {
  readonly availableAt: Date
}

/** SQL: a CTE that lets the transaction of the statement commit without waiting for the disk. */
const VOLATILE_COMMIT = `volatile as materialized (select set_config('synchronous_commit', 'off', true)),`
/** Below and above every key: conditions with them are ranges of the index, those with "or" would read it from its beginning. */
const NIL_ID = '00000000-0000-0000-0000-000000000000'
const MAX_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
/** Keys that one claim visits at most: each costs two probes of an index, some 10 µs. */
const KEYS_PER_CLAIM_MAX = 256

/** Stands in every row, and in one without a lease when nothing was leased. */
interface Progress {
  readonly lastKey: string | null
  readonly isWhole: boolean
  readonly hasMore: boolean
}

/**
 * Leases available items of one concurrency key after the other, of each an equal share of the claim within its limit, so that a
 * key with a million waiting items delays no other. The cost does not grow with what waits: keys are found by a loose index scan, one
 * probe per key, and their items read from where that probe ended: until they are vacuumed, what was claimed before it is passed
 * over, which is most of the cost.
 *
 * Rows that another holder is taking are passed over.
 */
export async function claimRoundRobin<Payload>(
  tx: Db,
  table: QueueTable,
  request: RoundRobinRequest,
): Promise<RoundRobinClaim<Lease<QueuedItem & Availability & Payload>>> {
  const { waiting, lease, id, key, payload, leasesPerKey = 1, hasVolatileClaims = false } = table
  const { group, holder, leaseIds, leaseMs, afterKey, keyLimits } = request
  const rows = await query<Lease<QueuedItem & Availability & Payload> & Progress>(
    tx,
    `with recursive ${hasVolatileClaims ? VOLATILE_COMMIT : ''} visit as (
       select (select coalesce(:afterKey::uuid, '${NIL_ID}')) as of_key, 0 as n, false as is_wrapped,
         null::timestamptz as first_at, null::uuid as first_id
       union all
       select next.* from visit v cross join lateral (
         (select q.${key}, v.n + 1, v.is_wrapped, q.available_at, q.${id} from ${waiting} q
          where q.queue_group = (select :group::text) and q.${key} > v.of_key
            and q.${key} <= case when v.is_wrapped then (select :afterKey::uuid) else '${MAX_ID}' end
          order by q.${key}, q.available_at, q.${id} limit 1)
         union all
         (select q.${key}, v.n + 1, true, q.available_at, q.${id} from ${waiting} q
          where not v.is_wrapped and q.queue_group = (select :group::text) and q.${key} <= (select :afterKey::uuid)
          order by q.${key}, q.available_at, q.${id} limit 1)
         limit 1
       ) next where v.n < ${KEYS_PER_CLAIM_MAX}
     ),
     visited as materialized (
       select v.of_key, v.n, v.first_at, v.first_id, case when v.first_at <= (select now()) then coalesce(limited.leases, ${leasesPerKey})
         - (select count(*) from ${lease} l where l.${key} = v.of_key and l.queue_group = (select :group::text)) else 0 end as free
       from visit v
       left join unnest((select :limitedKeys::uuid[]), (select :keyLimits::integer[])) as limited (of_key, leases)
         on limited.of_key = v.of_key
       where v.n > 0
     ),
     share as materialized (
       select ceil((select :limit::bigint)::numeric / greatest(1, count(*) filter (where free > 0)))::bigint as items from visited
     ),
     candidate as materialized (
       select c.*, v.n as key_number from visited v cross join lateral (
         select q.* from ${waiting} q
         where q.queue_group = (select :group::text) and q.${key} = v.of_key and q.available_at <= (select now())
           and (q.available_at, q.${id}) >= (v.first_at, v.first_id)
         order by q.available_at, q.${id} limit greatest(0, least(v.free, (select items from share)))
         for update of q skip locked
       ) c
       limit (select :limit::bigint)
     ),
     numbered as (select c.*, row_number() over (order by c.${id}) as slot from candidate c),
     leased as (
       insert into ${lease} (${itemColumns(table)}, lease_id, holder, attempt, attempt_base, claimed_at, expires_at)
       select ${itemColumns(table)}, ((select :leaseIds::uuid[]))[slot], :holder, attempt + 1, attempt_base, now(), now() + make_interval(secs => :leaseSeconds)
       from numbered
       on conflict do nothing
       returning *
     ),
     taken as (delete from ${waiting} q where q.${id} = any(array(select ${id} from leased))),
     reached as (
       select case when (select count(*) from candidate) = (select :limit::bigint) then (select max(key_number) from candidate)
         else (select max(n) from visited) end as n
     )
     select (select v.of_key from visited v where v.n = reached.n) as last_key,
       exists (select from candidate c join visited v on v.n = c.key_number group by v.n, v.free
         having count(*) = (select items from share) and count(*) < v.free) as has_more,
       reached.n is null or reached.n = (select max(n) from visited) and reached.n < ${KEYS_PER_CLAIM_MAX} as is_whole,
       l.${id} as id, l.environment_id, l.${key} as concurrency_key, l.lease_id, l.attempt,
       l.attempt_base, l.expires_at, c.available_at, ${payload}
     from ${hasVolatileClaims ? 'volatile, ' : ''}reached left join leased l on true left join (select ${id} as candidate_id, available_at from candidate) c on c.candidate_id = l.${id}
     order by c.available_at, l.${id}`,
    {
      group,
      afterKey,
      limitedKeys: keyLimits.map((limit) => limit.key),
      keyLimits: keyLimits.map((limit) => limit.leases),
      limit: leaseIds.length,
      leaseIds,
      holder,
      leaseSeconds: leaseMs / 1000,
    },
  )
  const [{ lastKey = null, hasMore = false, isWhole = true } = {}] = rows
  return { leases: rows.filter((row) => row.id !== null), lastKey, hasMore, isWhole }
}
