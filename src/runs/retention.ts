import { DAY_MS, type PollLoopSpec } from '../base/index.ts'
import { type DayRetentionDeps, dropOldDays } from '../database/index.ts'
import { deleteOrphanedCheckpoints, RUN_DAY_TABLES } from './sql/days.ts'
import { deleteExpiredPreviousRuns } from './sql/previous-run.ts'

/** A day that could not be dropped, because its table was too busy or runs are unfinished, is tried again after this. */
const RETENTION_INTERVAL_MS = 10 * 60 * 1000
/** Rows of other tables deleted in one pass. */
const ROW_BATCH = 1_000

/**
 * Retention: drops runs and missed ticks by whole days after their tick, never row by row. A day with runs that wait or are
 * leased is kept until these have ended. The latest run of a trigger stays readable on its schedule, and so does the state of
 * incremental syncs; without a trigger, until it has not changed for over a year.
 *
 * @param days how many whole days are kept
 */
export function retention(deps: DayRetentionDeps, days: number): PollLoopSpec {
  const { database, clock } = deps
  return {
    name: 'retention',
    intervalMs: RETENTION_INTERVAL_MS,
    async runOnce() {
      const before = new Date(clock.now().getTime() - days * DAY_MS)
      for (const table of RUN_DAY_TABLES) await dropOldDays(deps, table, days)
      const checkpoints = await deleteOrphanedCheckpoints(database.pool, before, ROW_BATCH)
      const previousRuns = await deleteExpiredPreviousRuns(database.pool, ROW_BATCH)
      return checkpoints === ROW_BATCH || previousRuns === ROW_BATCH
    },
  }
}
