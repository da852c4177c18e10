import type { WindowCounts } from '../../foundation/base/index.ts'
import { execute, type Pool, queryOne } from '../../foundation/database/index.ts'

/** A rate limit: at most `limit` requests of a subject in a sliding window. */
export interface RateLimitWindow {
  readonly environmentId: string
  readonly subject: string
  readonly limit: number
  readonly windowMs: number
}

/** The counts of a subject at this moment. */
export interface RateLimitWindowState extends WindowCounts {
  /** How long the subject is blocked, because the third party asked to wait; 0: it is not. */
  readonly blockedMs: number
}

const CLOCK_MS = `(extract(epoch from clock_timestamp()) * 1000)`
/** The counts of a row at this moment, in fixed windows: rows of older windows count as 0. */
const USED = `case when b.window_number = excluded.window_number then b.used else 0 end`
const PREVIOUS = `case b.window_number when excluded.window_number then b.previous
  when excluded.window_number - 1 then b.used else 0 end`

/**
 * Takes one request if the sliding window allows it; the condition is `slidingCount` of base/ in SQL. One statement on one
 * row: any number of processes share the count. Uses the primary key.
 */
export async function takeFromWindow(
  pool: Pool,
  { environmentId, subject, limit, windowMs }: RateLimitWindow,
): Promise<boolean> {
  const taken = await execute(
    pool,
    `insert into request_budget as b (environment_id, subject, window_number, used, previous)
     values (:environmentId, :subject, floor(${CLOCK_MS} / :windowMs)::bigint, 1, 0)
     on conflict (environment_id, subject) do update
       set used = ${USED} + 1, previous = ${PREVIOUS}, window_number = excluded.window_number, touched_at = now()
       where coalesce(b.blocked_until <= clock_timestamp(), true)
         and (${USED}) + (${PREVIOUS}) * (1 - (${CLOCK_MS} / :windowMs - excluded.window_number)) + 1 <= :limit`,
    { environmentId, subject, windowMs, limit },
  )
  return taken === 1
}

/** Returns one request to the window, because it was not sent. Uses the primary key. */
export async function returnToWindow(pool: Pool, { environmentId, subject }: RateLimitWindow): Promise<void> {
  await execute(
    pool,
    `update request_budget set used = greatest(0, used - 1)
     where environment_id = :environmentId and subject = :subject`,
    { environmentId, subject },
  )
}

/** The counts of a subject; `undefined` when it has none. Uses the primary key. */
export async function findWindowState(
  pool: Pool,
  { environmentId, subject, windowMs }: RateLimitWindow,
): Promise<RateLimitWindowState | undefined> {
  return await queryOne(
    pool,
    `select ${USED} as used, ${PREVIOUS} as previous,
       (excluded.at - excluded.window_number)::float8 as elapsed,
       greatest(0, coalesce(extract(epoch from b.blocked_until - clock_timestamp()) * 1000, 0))::float8 as blocked_ms
     from request_budget b,
       (select ${CLOCK_MS} / :windowMs as at, floor(${CLOCK_MS} / :windowMs)::bigint as window_number) as excluded
     where b.environment_id = :environmentId and b.subject = :subject`,
    { windowMs, environmentId, subject },
  )
}

/** Blocks a subject for a while; a longer block is kept. Uses the primary key. */
export async function blockWindow(
  pool: Pool,
  { environmentId, subject, windowMs }: RateLimitWindow,
  blockMs: number,
): Promise<void> {
  await execute(
    pool,
    `insert into request_budget as b (environment_id, subject, window_number, used, previous, blocked_until)
     values (:environmentId, :subject, floor(${CLOCK_MS} / :windowMs)::bigint, 0, 0,
       clock_timestamp() + :blockMs * interval '1 millisecond')
     on conflict (environment_id, subject) do update
       set blocked_until = greatest(b.blocked_until, excluded.blocked_until), touched_at = now()`,
    { environmentId, subject, windowMs, blockMs },
  )
}

/** Deletes counts that were not used for longer than the longest window. A scan of a small table. */
export async function deleteIdleWindows(pool: Pool, idleMs: number, limit: number): Promise<number> {
  return await execute(
    pool,
    `delete from request_budget where ctid = any(array(
       select ctid from request_budget where touched_at < now() - :idleMs * interval '1 millisecond' limit :limit))`,
    { idleMs, limit },
  )
}

/** One of the calls that an account may have in flight at the same time. */
export interface ConcurrencySlot {
  readonly environmentId: string
  readonly accountId: string
  readonly holder: string
}

/**
 * Acquires one of an account's `slotsMax` slots, or one whose holder did not release it in time. `false` when all are held, or
 * another call acquired the same one at the same moment: then try again. Uses the primary key.
 */
export async function acquireConcurrencySlot(
  pool: Pool,
  { environmentId, accountId, holder }: ConcurrencySlot,
  slotsMax: number,
  ttlMs: number,
): Promise<boolean> {
  const acquired = await execute(
    pool,
    `insert into request_slot as held (environment_id, account_id, slot, holder, expires_at)
     select :environmentId::uuid, :accountId::uuid, slot, :holder, clock_timestamp() + :ttlMs * interval '1 millisecond'
     from generate_series(1, :slotsMax::int) as slot
     where not exists (
       select from request_slot other
       where other.environment_id = :environmentId and other.account_id = :accountId and other.slot = slot.slot
         and other.expires_at > clock_timestamp())
     order by random() limit 1
     on conflict (environment_id, account_id, slot) do update
       set holder = excluded.holder, expires_at = excluded.expires_at
       where held.expires_at <= clock_timestamp()`,
    { environmentId, accountId, holder, ttlMs, slotsMax },
  )
  return acquired > 0
}

/** Releases a slot, unless it expired and has another holder. Uses the primary key. */
export async function releaseConcurrencySlot(
  pool: Pool,
  { environmentId, accountId, holder }: ConcurrencySlot,
): Promise<void> {
  await execute(
    pool,
    'delete from request_slot where environment_id = :environmentId and account_id = :accountId and holder = :holder',
    { environmentId, accountId, holder },
  )
}

/** Deletes slots whose holders did not release them. A scan of a small table. */
export async function deleteExpiredSlots(pool: Pool, limit: number): Promise<number> {
  return await execute(
    pool,
    'delete from request_slot where ctid = any(array(select ctid from request_slot where expires_at < now() limit :limit))',
    { limit },
  )
}
