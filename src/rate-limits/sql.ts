import type { WindowCounts } from '../base/index.ts'
import { execute, queryOne, type Tx } from '../database/index.ts'

/** Requests that may be made, counted under one subject. */
export interface RateLimitWindow {
  readonly environmentId: string
  readonly subject: string
  readonly limit: number
  readonly windowMs: number
}

/** What is counted under a subject at this moment. */
export interface RateLimitWindowState extends WindowCounts {
  /** How long the third party wants no request at all; 0: it takes them. */
  readonly blockedMs: number
}

/** The database's clock in milliseconds, and what a row counts as of now: windows gone by are forgotten. */
const CLOCK_MS = `(extract(epoch from clock_timestamp()) * 1000)`
const USED = `case when b.window_number = excluded.window_number then b.used else 0 end`
const PREVIOUS = `case b.window_number when excluded.window_number then b.previous
  when excluded.window_number - 1 then b.used else 0 end`

/**
 * Takes one request if the sliding window allows it; the condition is `slidingCount` of base/ in SQL. One statement on one row:
 * any number of processes share the count. Uses the primary key.
 */
export async function takeFromWindow(
  tx: Tx,
  { environmentId, subject, limit, windowMs }: RateLimitWindow,
): Promise<boolean> {
  const taken = await execute(
    tx,
    `insert into request_budget as b (environment_id, subject, window_number, used, previous)
     values (?, ?, floor(${CLOCK_MS} / ?)::bigint, 1, 0)
     on conflict (environment_id, subject) do update
       set used = ${USED} + 1, previous = ${PREVIOUS}, window_number = excluded.window_number, touched_at = now()
       where coalesce(b.blocked_until <= clock_timestamp(), true)
         and (${USED}) + (${PREVIOUS}) * (1 - (${CLOCK_MS} / ? - excluded.window_number)) + 1 <= ?`,
    [environmentId, subject, windowMs, windowMs, limit],
  )
  return taken === 1
}

/** Gives one request back that was not made after all. */
export async function returnToWindow(tx: Tx, { environmentId, subject }: RateLimitWindow): Promise<void> {
  await execute(tx, 'update request_budget set used = greatest(0, used - 1) where environment_id = ? and subject = ?', [
    environmentId,
    subject,
  ])
}

/** What is counted under a subject; `undefined` when nothing is. Rides on the primary key. */
export async function findWindowState(
  tx: Tx,
  { environmentId, subject, windowMs }: RateLimitWindow,
): Promise<RateLimitWindowState | undefined> {
  return await queryOne(
    tx,
    `select ${USED} as used, ${PREVIOUS} as previous,
       (excluded.at - excluded.window_number)::float8 as elapsed,
       greatest(0, coalesce(extract(epoch from b.blocked_until - clock_timestamp()) * 1000, 0))::float8 as "blockedMs"
     from request_budget b,
       (select ${CLOCK_MS} / ? as at, floor(${CLOCK_MS} / ?)::bigint as window_number) as excluded
     where b.environment_id = ? and b.subject = ?`,
    [windowMs, windowMs, environmentId, subject],
  )
}

/** Lets nothing through under a subject for a while; a longer block that is there stays. */
export async function blockWindow(
  tx: Tx,
  { environmentId, subject, windowMs }: RateLimitWindow,
  forMs: number,
): Promise<void> {
  await execute(
    tx,
    `insert into request_budget as b (environment_id, subject, window_number, used, previous, blocked_until)
     values (?, ?, floor(${CLOCK_MS} / ?)::bigint, 0, 0, clock_timestamp() + ? * interval '1 millisecond')
     on conflict (environment_id, subject) do update
       set blocked_until = greatest(b.blocked_until, excluded.blocked_until), touched_at = now()`,
    [environmentId, subject, windowMs, forMs],
  )
}

/** Forgets counts that nothing has touched for longer than the longest window. Reads the table, which is small. */
export async function deleteIdleWindows(tx: Tx, idleMs: number, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from request_budget where ctid = any(array(
       select ctid from request_budget where touched_at < now() - ? * interval '1 millisecond' limit ?))`,
    [idleMs, limit],
  )
}

/** A place among the calls that an account has in flight. */
export interface ConcurrencySlot {
  readonly environmentId: string
  readonly accountId: string
  readonly holder: string
}

/**
 * Takes one of an account's `slotsMax` places, also one whose holder did not give it back in time. `false` when all are
 * taken, or another took the same at the same moment: then try again. Rides on the primary key.
 */
export async function acquireConcurrencySlot(
  tx: Tx,
  { environmentId, accountId, holder }: ConcurrencySlot,
  slotsMax: number,
  ttlMs: number,
): Promise<boolean> {
  const taken = await queryOne<{ slot: number }>(
    tx,
    `insert into request_slot as held (environment_id, account_id, slot, holder, expires_at)
     select ?, ?, slot, ?, clock_timestamp() + ? * interval '1 millisecond' from generate_series(1, ?::int) as slot
     where not exists (
       select from request_slot other
       where other.environment_id = ? and other.account_id = ? and other.slot = slot.slot
         and other.expires_at > clock_timestamp())
     order by random() limit 1
     on conflict (environment_id, account_id, slot) do update
       set holder = excluded.holder, expires_at = excluded.expires_at
       where held.expires_at <= clock_timestamp()
     returning slot`,
    [environmentId, accountId, holder, ttlMs, slotsMax, environmentId, accountId],
  )
  return taken !== undefined
}

/** Gives a place back; nothing happens when it was taken over meanwhile. */
export async function releaseConcurrencySlot(
  tx: Tx,
  { environmentId, accountId, holder }: ConcurrencySlot,
): Promise<void> {
  await execute(tx, 'delete from request_slot where environment_id = ? and account_id = ? and holder = ?', [
    environmentId,
    accountId,
    holder,
  ])
}

/** Forgets places whose holders are gone. Reads the table, which is small. */
export async function deleteExpiredSlots(tx: Tx, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from request_slot where ctid = any(array(
       select ctid from request_slot where expires_at < now() limit ?))`,
    [limit],
  )
}
