import { type Clock, DAY_MS } from '../base/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Database } from './database.ts'
import { type DayTable, dropDay, emptyDefaultPartition, ensureDayPartitions, listDaysBefore } from './day-partition.ts'
import { isLockTimeout, isStatementTimeout } from './errors.ts'

/** Partitions from yesterday, for rows written over midnight, to enough days ahead for a weekend without workers. */
const DAYS_BEHIND = 1
const DAYS_AHEAD = 4

/** What the maintenance of days needs. */
export interface DayRetentionDeps {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Pick<Logger, 'info'>
}

/** Creates the partitions of the coming days, so that old days can be dropped as a whole. */
export async function createComingDays(
  { database, clock }: Pick<DayRetentionDeps, 'database' | 'clock'>,
  table: DayTable,
): Promise<void> {
  const firstDay = new Date(clock.now().getTime() - DAYS_BEHIND * DAY_MS)
  await database.transaction((tx) => ensureDayPartitions(tx, table, firstDay, DAYS_BEHIND + 1 + DAYS_AHEAD))
}

/**
 * Drops the days of a table that are over and not in use, never row by row. A day whose table is too busy to be locked stays
 * until the next call.
 *
 * @param days how many whole days are kept
 */
export async function dropOldDays(deps: DayRetentionDeps, table: DayTable, days: number): Promise<void> {
  const { database, clock } = deps
  const before = new Date(clock.now().getTime() - days * DAY_MS)
  for (const day of await listDaysBefore(database.pool, table, before)) await dropOldDay(deps, table, day)
  await unlessBusy(database.transaction((tx) => emptyDefaultPartition(tx, table, before)))
}

async function dropOldDay({ database, logger }: DayRetentionDeps, table: DayTable, day: Date): Promise<void> {
  // Checked without a lock first: a day that is kept blocks no other statement.
  if (await table.isInUse?.(database.pool, day)) return
  const isDropped = await unlessBusy(database.transaction((tx) => dropDay(tx, table, day)))
  if (isDropped) logger.info({ table: table.name, day: day.toISOString().slice(0, 10) }, 'a day was dropped')
}

/** False when the table was too busy to be locked, or to be checked under the lock. */
async function unlessBusy(work: Promise<boolean>): Promise<boolean> {
  return await work.catch((error: unknown) => {
    if (isLockTimeout(error) || isStatementTimeout(error)) return false
    throw error
  })
}
