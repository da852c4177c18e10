import { execute, query, queryOne, type Tx } from '../../database/index.ts'

/** Tables that are partitioned by the UTC day of a tick, in the order a tick writes them: runs, and missed ticks. */
export const DAY_TABLES = ['sync_job_run', 'missed_ticks'] as const
export type DayTable = (typeof DAY_TABLES)[number]

/** How each is partitioned and stored. */
const LAYOUT: Readonly<Record<DayTable, { readonly tick: string; readonly storage: string }>> = {
  sync_job_run: {
    tick: 'scheduled_for',
    storage: `with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0)`,
  },
  missed_ticks: { tick: 'last_at', storage: '' },
}

/** Longest wait for the lock that attaches a day; the next round of maintenance tries again. */
const ATTACH_LOCK_TIMEOUT = '2s'
/** Longest wait for the lock that drops a day; all statements on the table queue behind it, so it is short. */
const DROP_LOCK_TIMEOUT = '200ms'
/** Longest check for unfinished runs under that lock; a million waiting runs take some 0.1 s, an index would cost every tick. */
const DROP_CHECK_TIMEOUT = '500ms'
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Creates a partition for each of the days that has none; returns the names of the new ones.
 *
 * Needs a transaction. Several workers take turns by a lock that does not block readers and writers; attaching locks only the
 * default partition, for a moment. A day that has rows in the default partition gets no other.
 *
 * @param firstDay any moment of the first day, in UTC
 */
export async function ensureDayPartitions(
  tx: Tx,
  table: DayTable,
  firstDay: Date,
  days: number,
): Promise<readonly string[]> {
  await query(tx, `set local lock_timeout = '${ATTACH_LOCK_TIMEOUT}'`)
  await query(tx, `lock table only ${table} in share update exclusive mode`)
  const names = new Set(await partitionNames(tx, table))
  const made: string[] = []
  for (let ahead = 0; ahead < days; ahead++) {
    const day = new Date(firstDay.getTime() + ahead * DAY_MS)
    const name = partitionName(table, day)
    if (!names.has(name) && (await createPartition(tx, table, day))) made.push(name)
  }
  return made
}

async function createPartition(tx: Tx, table: DayTable, day: Date): Promise<boolean> {
  const { tick, storage } = LAYOUT[table]
  const name = partitionName(table, day)
  const from = `'${dayText(day)} 00:00Z'`
  const to = `'${dayText(new Date(day.getTime() + DAY_MS))} 00:00Z'`
  const isTaken = await queryOne(
    tx,
    `select from ${table}_default where ${tick} >= ${from} and ${tick} < ${to} limit 1`,
  )
  if (isTaken !== undefined) return false
  await query(tx, `create table ${name} (like ${table} including defaults including constraints) ${storage}`)
  await query(tx, `alter table ${table} attach partition ${name} for values from (${from}) to (${to})`)
  return true
}

/** The days of a table that have a partition and are over before that moment, oldest first, each as its first moment. */
export async function listDaysBefore(tx: Tx, table: DayTable, before: Date): Promise<readonly Date[]> {
  const days = (await partitionNames(tx, table)).flatMap((name) => dayOf(table, name) ?? [])
  return days.filter((day) => day.getTime() + DAY_MS <= before.getTime()).sort((a, b) => a.getTime() - b.getTime())
}

/**
 * Drops the partition of a day, unless runs of it are unfinished; a missing partition counts as dropped.
 *
 * Needs a transaction. Checks for unfinished runs under the lock: a run that is being retried is seen, or its retry finds no
 * run.
 *
 * @returns whether the day is gone
 * @throws an error that `isLockTimeout` or `isStatementTimeout` knows when the table is too busy
 */
export async function dropDay(tx: Tx, table: DayTable, day: Date): Promise<boolean> {
  await query(tx, `set local lock_timeout = '${DROP_LOCK_TIMEOUT}'`)
  await query(tx, `set local statement_timeout = '${DROP_CHECK_TIMEOUT}'`)
  await query(tx, `lock table only ${table} in access exclusive mode`)
  if (table === 'sync_job_run' && (await hasUnfinishedRuns(tx, day))) return false
  await query(tx, 'set local statement_timeout to default')
  await query(tx, `drop table if exists ${partitionName(table, day)}`)
  return true
}

/**
 * Whether runs of a UTC day wait or are leased. Reads the two small tables that have every unfinished run, in one statement,
 * so that a run which moves from one to the other is seen.
 */
export async function hasUnfinishedRuns(tx: Tx, day: Date): Promise<boolean> {
  const to = new Date(day.getTime() + DAY_MS)
  const found = await queryOne(
    tx,
    `select from run_queue where scheduled_for >= :day and scheduled_for < :to
     union all select from run_lease where scheduled_for >= :day and scheduled_for < :to limit 1`,
    { day, to },
  )
  return found !== undefined
}

/**
 * Empties the default partition when all of its rows are older than that moment and final. Days that never had a partition
 * of their own are deleted here.
 *
 * Needs a transaction.
 *
 * @returns whether there was something, and now there is nothing
 * @throws an error that `isLockTimeout` knows when the partition is too busy
 */
export async function emptyDefaultPartition(tx: Tx, table: DayTable, before: Date): Promise<boolean> {
  if (!(await isDefaultOver(tx, table, before))) return false
  await query(tx, `set local lock_timeout = '${DROP_LOCK_TIMEOUT}'`)
  await query(tx, `lock table ${table}_default in access exclusive mode`)
  if (!(await isDefaultOver(tx, table, before))) return false
  await query(tx, `truncate ${table}_default`)
  return true
}

async function isDefaultOver(tx: Tx, table: DayTable, before: Date): Promise<boolean> {
  const { tick } = LAYOUT[table]
  const found = await queryOne<{ readonly isOver: boolean }>(
    tx,
    `select exists (select from ${table}_default)
       and not exists (select from ${table}_default where ${tick} >= :before) as "isOver"`,
    { before },
  )
  if (found?.isOver !== true || table !== 'sync_job_run') return found?.isOver === true
  const unfinished = await queryOne(
    tx,
    `select from sync_job_run_default where status in ('created', 'running', 'rate_limited') limit 1`,
  )
  return unfinished === undefined
}

/** Deletes checkpoints before that moment whose runs were dropped, at most `limit`; returns how many. */
export async function deleteOrphanedCheckpoints(tx: Tx, before: Date, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from run_checkpoint where run_id = any(array(
       select c.run_id from run_checkpoint c where c.scheduled_for < :before
         and not exists (select from sync_job_run r where r.id = c.run_id and r.scheduled_for = c.scheduled_for)
       limit :limit))`,
    { before, limit },
  )
}

async function partitionNames(tx: Tx, table: DayTable): Promise<readonly string[]> {
  const found = await query<{ readonly name: string }>(
    tx,
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = :table::regclass`,
    { table },
  )
  return found.map(({ name }) => name)
}

function partitionName(table: DayTable, day: Date): string {
  return `${table}_${dayText(day).replaceAll('-', '')}`
}

/** The day in the name of a partition; undefined for the default one. */
function dayOf(table: DayTable, name: string): Date | undefined {
  const [, year, month, day] = new RegExp(`^${table}_(\\d{4})(\\d\\d)(\\d\\d)$`).exec(name) ?? []
  return year === undefined ? undefined : new Date(`${year}-${month}-${day}T00:00:00Z`)
}

/** The UTC day as `2026-11-05`. */
function dayText(day: Date): string {
  return day.toISOString().slice(0, 10)
}
