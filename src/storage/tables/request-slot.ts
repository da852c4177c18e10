import { execute, queryOne, type Tx } from '../database.ts'

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
