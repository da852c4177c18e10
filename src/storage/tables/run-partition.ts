import { rows, type Tx } from '../database.ts'

/** Longest wait for a lock on the runs; a keeper that cannot have it tries again later. */
const LOCK_TIMEOUT = '2s'
const STORAGE = `fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0`
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Makes a partition of sync_job_run for each of the days that has none; returns the names of the new ones.
 *
 * Needs a transaction. Keepers of several workers take turns by a lock that readers and writers of runs do not notice;
 * attaching locks only the default partition, for a moment. A day that has rows there already stays there.
 *
 * @param firstDay any moment of the first day, in UTC
 */
export async function ensureRunPartitions(tx: Tx, firstDay: Date, days: number): Promise<readonly string[]> {
  await rows(tx, `set local lock_timeout = '${LOCK_TIMEOUT}'`)
  await rows(tx, 'lock table sync_job_run in share update exclusive mode')
  const existing = await rows<{ name: string }>(
    tx,
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'sync_job_run'::regclass`,
  )
  const names = new Set(existing.map(({ name }) => name))
  const made: string[] = []
  for (let ahead = 0; ahead < days; ahead++) {
    const day = new Date(firstDay.getTime() + ahead * DAY_MS)
    const name = `sync_job_run_${dayText(day).replaceAll('-', '')}`
    if (!names.has(name) && (await makePartition(tx, name, day))) made.push(name)
  }
  return made
}

async function makePartition(tx: Tx, name: string, day: Date): Promise<boolean> {
  const from = `'${dayText(day)} 00:00Z'`
  const to = `'${dayText(new Date(day.getTime() + DAY_MS))} 00:00Z'`
  const taken = await rows(
    tx,
    `select from sync_job_run_default where scheduled_for >= ${from} and scheduled_for < ${to} limit 1`,
  )
  if (taken.length > 0) return false
  await rows(tx, `create table ${name} (like sync_job_run including defaults including constraints) with (${STORAGE})`)
  await rows(tx, `alter table sync_job_run attach partition ${name} for values from (${from}) to (${to})`)
  return true
}

/** The UTC day as `2026-11-05`. */
function dayText(day: Date): string {
  return day.toISOString().slice(0, 10)
}
