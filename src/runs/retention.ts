import type { Clock, PollLoopSpec } from '../base/index.ts'
import { type Database, isLockTimeout, isStatementTimeout } from '../database/index.ts'
import type { Logger } from '../telemetry/index.ts'
import {
  DAY_TABLES,
  type DayTable,
  deleteOrphanedCheckpoints,
  dropDay,
  emptyDefaultPartition,
  ensureDayPartitions,
  hasUnfinishedRuns,
  listDaysBefore,
} from './sql/day-partition.ts'
import { deleteExpiredPreviousRuns } from './sql/previous-run.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
/** Partitions from yesterday, for ticks caught up over midnight, to enough days ahead for a weekend without workers. */
const DAYS_BEHIND = 1
const DAYS_AHEAD = 4
/** A day that could not be dropped, because its table was too busy or runs are unfinished, is tried again after this. */
const RETENTION_INTERVAL_MS = 10 * 60 * 1000
/** Rows of other tables deleted in one pass. */
const ROW_BATCH = 1_000

/** Creates the partitions of the coming days, so that old days can be dropped as a whole. */
export function partitionMaintenance(database: Database, clock: Pick<Clock, 'now'>): PollLoopSpec {
  return {
    name: 'partitions',
    intervalMs: HOUR_MS,
    async runOnce() {
      const firstDay = new Date(clock.now().getTime() - DAYS_BEHIND * DAY_MS)
      const days = DAYS_BEHIND + 1 + DAYS_AHEAD
      for (const table of DAY_TABLES) await database.transaction((tx) => ensureDayPartitions(tx, table, firstDay, days))
      return false
    },
  }
}

/** What retention needs. */
export interface RetentionDeps {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Pick<Logger, 'info'>
}

/**
 * Retention: drops runs and missed ticks by whole days after their tick, never row by row. A day with runs that wait or are
 * leased is kept until these have ended. The latest run of a trigger stays readable on its schedule, and so does the state of
 * incremental syncs; without a trigger, until it has not changed for over a year.
 *
 * @param days how many whole days are kept
 */
export function retention(deps: RetentionDeps, days: number): PollLoopSpec {
  const { database, clock } = deps
  return {
    name: 'retention',
    intervalMs: RETENTION_INTERVAL_MS,
    async runOnce() {
      const before = new Date(clock.now().getTime() - days * DAY_MS)
      for (const table of DAY_TABLES) {
        for (const day of await listDaysBefore(database.pool, table, before)) await dropExpiredDay(deps, table, day)
        await unlessBusy(database.transaction((tx) => emptyDefaultPartition(tx, table, before)))
      }
      const checkpoints = await deleteOrphanedCheckpoints(database.pool, before, ROW_BATCH)
      const previousRuns = await deleteExpiredPreviousRuns(database.pool, ROW_BATCH)
      return checkpoints === ROW_BATCH || previousRuns === ROW_BATCH
    },
  }
}

async function dropExpiredDay({ database, logger }: RetentionDeps, table: DayTable, day: Date): Promise<void> {
  // Checked without a lock first: a day that is kept blocks no other statement.
  if (table === 'sync_job_run' && (await hasUnfinishedRuns(database.pool, day))) return
  const isDropped = await unlessBusy(database.transaction((tx) => dropDay(tx, table, day)))
  if (isDropped) logger.info({ table, day: day.toISOString().slice(0, 10) }, 'a day was dropped')
}

/** False when the table was too busy to be locked, or to be checked under the lock. */
async function unlessBusy(work: Promise<boolean>): Promise<boolean> {
  return await work.catch((error: unknown) => {
    if (isLockTimeout(error) || isStatementTimeout(error)) return false
    throw error
  })
}
