import { execute, type Tx } from '../database.ts'
import type { NowOverride } from './queue-statements.ts'

/** Workers that were not heard of for so long are forgotten by the others. */
const WORKER_RETENTION = `interval '1 hour'`

/**
 * Notes that a worker lives, and forgets those long gone. Reads the whole table, which has a row per worker.
 *
 * @param regions whose runs it takes; empty: all
 */
export async function touchWorker(tx: Tx, id: string, regions: readonly string[], now: NowOverride): Promise<void> {
  await execute(
    tx,
    `with clock as (select coalesce(?::timestamptz, now()) as at),
     gone as (delete from worker where last_seen_at < (select at from clock) - ${WORKER_RETENTION} and id <> ?)
     insert into worker (id, regions, last_seen_at) select ?, ?::text[], at from clock
     on conflict (id) do update set regions = excluded.regions, last_seen_at = excluded.last_seen_at`,
    [now, id, id, regions],
  )
}

/** Forgets a worker that takes no more runs. */
export async function deleteWorker(tx: Tx, id: string): Promise<void> {
  await execute(tx, 'delete from worker where id = ?', [id])
}
