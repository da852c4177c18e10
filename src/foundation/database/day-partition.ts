import { DAY_MS } from '../base/clock.ts'
import { type Db, query, queryOne, STATEMENT_TIMEOUT_MS_DEFAULT } from './database.ts'

/** A table that is partitioned by UTC days, so that old days are dropped as a whole; it has a default partition. */
export interface DayTable {
  readonly name: string
  /** The column by whose range it is partitioned. */
  readonly column: string
  /** The smallest value of the column on the day that begins at this moment, as the text of an SQL literal. */
  readonly lowest: (dayStart: Date) => string
  /** Storage parameters of a partition, `with (…)`. */
  readonly storage?: string
  /** Whether rows of the day are still needed; a day that is in use is not dropped. */
  readonly isInUse?: (tx: Db, day: Date) => Promise<boolean>
  /** SQL: the condition of rows that are still needed; while the default partition has one, it is not emptied. */
  readonly unfinished?: string
  /** Called in the transaction that drops a day, under the lock on the table. */
  readonly onDrop?: (tx: Db, day: Date) => Promise<void>
}

/** Longest wait for the lock that attaches a day; the next round of maintenance tries again. */
const ATTACH_LOCK_TIMEOUT = '2s'
/** Longest wait for the lock that drops a day; all statements on the table queue behind it, so it is short. */
const DROP_LOCK_TIMEOUT = '200ms'
/** Longest check under that lock whether the day is in use. */
const DROP_CHECK_TIMEOUT = '500ms'

/**
 * Creates a partition for each of the days that has none; returns the names of the new ones.
 *
 * Needs a transaction. Several workers take turns by a lock that does not block readers and writers; attaching locks only the
 * default partition, for a moment. A day that has rows in the default partition gets no other.
 *
 * @param firstDay any moment of the first day, in UTC
 */
export async function ensureDayPartitions(
  tx: Db,
  table: DayTable,
  firstDay: Date,
  days: number,
): Promise<readonly string[]> {
  await query(tx, `set local lock_timeout = '${ATTACH_LOCK_TIMEOUT}'`)
  await query(tx, `lock table only ${table.name} in share update exclusive mode`)
  const names = new Set(await partitionNames(tx, table))
  const made: string[] = []
  for (let ahead = 0; ahead < days; ahead++) {
    const day = new Date(firstDay.getTime() + ahead * DAY_MS)
    const name = partitionName(table, day)
    if (!names.has(name) && (await createPartition(tx, table, day))) made.push(name)
  }
  return made
}

async function createPartition(tx: Db, table: DayTable, day: Date): Promise<boolean> {
  const { name, column, storage = '' } = table
  const partition = partitionName(table, day)
  const start = startOf(day)
  const [from, to] = [`'${table.lowest(start)}'`, `'${table.lowest(new Date(start.getTime() + DAY_MS))}'`]
  const isTaken = await queryOne(
    tx,
    `select from ${name}_default where ${column} >= ${from} and ${column} < ${to} limit 1`,
  )
  if (isTaken !== undefined) return false
  await query(
    tx,
    `create table ${partition} (like ${name} including defaults including constraints including generated) ${storage}`,
  )
  await query(tx, `alter table ${name} attach partition ${partition} for values from (${from}) to (${to})`)
  return true
}

/** The days of a table that have a partition and are over before that moment, oldest first, each as its first moment. */
export async function listDaysBefore(tx: Db, table: DayTable, before: Date): Promise<readonly Date[]> {
  const days = (await partitionNames(tx, table)).flatMap((name) => dayOf(table, name) ?? [])
  return days.filter((day) => day.getTime() + DAY_MS <= before.getTime()).sort((a, b) => a.getTime() - b.getTime())
}

/**
 * Drops the partition of a day, unless it is in use; a missing partition counts as dropped.
 *
 * Needs a transaction. Checks the use under the lock: a row that is being taken into use is seen, or its change finds no row.
 *
 * @returns whether the day is gone
 * @throws an error that `isLockTimeout` or `isStatementTimeout` knows when the table is too busy
 */
export async function dropDay(tx: Db, table: DayTable, day: Date): Promise<boolean> {
  await query(tx, `set local lock_timeout = '${DROP_LOCK_TIMEOUT}'`)
  await query(tx, `set local statement_timeout = '${DROP_CHECK_TIMEOUT}'`)
  await query(tx, `lock table only ${table.name} in access exclusive mode`)
  if (await table.isInUse?.(tx, day)) return false
  await query(tx, `set local statement_timeout = ${STATEMENT_TIMEOUT_MS_DEFAULT}`)
  await query(tx, `drop table if exists ${partitionName(table, day)}`)
  await table.onDrop?.(tx, day)
  return true
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
export async function emptyDefaultPartition(tx: Db, table: DayTable, before: Date): Promise<boolean> {
  if (!(await isDefaultOver(tx, table, before))) return false
  await query(tx, `set local lock_timeout = '${DROP_LOCK_TIMEOUT}'`)
  await query(tx, `lock table ${table.name}_default in access exclusive mode`)
  if (!(await isDefaultOver(tx, table, before))) return false
  await query(tx, `truncate ${table.name}_default`)
  return true
}

async function isDefaultOver(tx: Db, table: DayTable, before: Date): Promise<boolean> {
  const { name, column, unfinished = 'false' } = table
  const found = await queryOne<{ readonly isOver: boolean }>(
    tx,
    `select exists (select from ${name}_default)
       and not exists (select from ${name}_default where ${column} >= :before or (${unfinished})) as is_over`,
    { before: table.lowest(before) },
  )
  return found?.isOver === true
}

async function partitionNames(tx: Db, { name }: DayTable): Promise<readonly string[]> {
  const found = await query<{ readonly name: string }>(
    tx,
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = :table::regclass`,
    { table: name },
  )
  return found.map(({ name }) => name)
}

function partitionName(table: DayTable, day: Date): string {
  return `${table.name}_${dayText(day).replaceAll('-', '')}`
}

/** The day in the name of a partition; undefined for the default one. */
function dayOf(table: DayTable, name: string): Date | undefined {
  const [, year, month, day] = new RegExp(`^${table.name}_(\\d{4})(\\d\\d)(\\d\\d)$`).exec(name) ?? []
  return year === undefined ? undefined : new Date(`${year}-${month}-${day}T00:00:00Z`)
}

/** The first moment of the UTC day of a moment. */
function startOf(moment: Date): Date {
  return new Date(`${dayText(moment)}T00:00:00Z`)
}

/** The UTC day as `2026-11-05`. */
function dayText(day: Date): string {
  return day.toISOString().slice(0, 10)
}
