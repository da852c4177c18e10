import type { Clock } from '../base/index.ts'
import {
  DAY_TABLES,
  type Database,
  type DayTable,
  deleteExpiredPreviousRuns,
  deleteOrphanedCheckpoints,
  dropDay,
  emptyDefaultPartition,
  hasUnfinishedRuns,
  isLockTimeout,
  isStatementTimeout,
  listDaysBefore,
} from '../storage/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { PollLoopSpec } from './loop.ts'

/** What forgetting needs. */
export interface RetentionDeps {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly logger: Pick<Logger, 'info'>
}

const DAY_MS = 24 * 60 * 60 * 1000
/** A day that could not be dropped, because its table was too busy or runs are unfinished, is tried again after so long. */
const RETENTION_INTERVAL_MS = 10 * 60 * 1000
/** Rows of other tables deleted in one pass. */
const ROW_BATCH = 1_000

/**
 * Forgets runs and missed ticks some days after their tick, by whole days and never row by row. A day that has runs which
 * wait or are held stays until they are over. The latest run of a trigger stays readable on its schedule, and so does where
 * incremental syncs begin; without a trigger, until it has not moved for over a year.
 *
 * @param days how many whole days are kept
 */
export function retention(deps: RetentionDeps, days: number): PollLoopSpec {
  return {
    name: 'retention',
    intervalMs: RETENTION_INTERVAL_MS,
    async runOnce() {
      const before = new Date(deps.clock.now().getTime() - days * DAY_MS)
      for (const table of DAY_TABLES) {
        for (const day of await listDaysBefore(deps.database.pool, table, before))
          await dropExpiredDay(deps, table, day)
        await falseWhenBusy(deps.database.transaction((tx) => emptyDefaultPartition(tx, table, before)))
      }
      const { pool: direct } = deps.database
      const checkpoints = await deleteOrphanedCheckpoints(direct, before, ROW_BATCH)
      const previousRuns = await deleteExpiredPreviousRuns(direct, deps.clock.now(), ROW_BATCH)
      return checkpoints === ROW_BATCH || previousRuns === ROW_BATCH
    },
  }
}

async function dropExpiredDay({ database, logger }: RetentionDeps, table: DayTable, day: Date): Promise<void> {
  // Asked without a lock first: a day that must stay should cost nobody anything.
  if (table === 'sync_job_run' && (await hasUnfinishedRuns(database.pool, day))) return
  const isGone = await falseWhenBusy(database.transaction((tx) => dropDay(tx, table, day)))
  if (isGone) logger.info({ table, day: day.toISOString().slice(0, 10) }, 'a day was forgotten')
}

/** False when the table was too busy to be locked, or to be looked at under the lock. */
async function falseWhenBusy(work: Promise<boolean>): Promise<boolean> {
  return await work.catch((error: unknown) => {
    if (isLockTimeout(error) || isStatementTimeout(error)) return false
    throw error
  })
}
