import { DAY_MS, type PollLoopSpec } from '../../foundation/base/index.ts'
import { type Database, type DayRetentionDeps, type Db, dropOldDays } from '../../foundation/database/index.ts'
import { QUEUE_POLICY } from '../../foundation/queue/index.ts'
import { WEBHOOK_QUEUE_GROUP } from './run.ts'
import { deleteOrphanedCheckpoints, RUN_DAY_TABLES } from './sql/days.ts'
import { deleteExpiredPreviousRuns } from './sql/previous-run.ts'
import { countUnservedWork, type UnservedWork } from './sql/unserved-work.ts'

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

/** Work is begun within seconds where a worker serves its region. */
const WAITING_MS = 60_000
const CHECK_INTERVAL_MS = 60_000

/** What waits for over a minute in regions that no worker serves; empty while every such region is served. */
export async function findUnservedWork(tx: Db): Promise<readonly UnservedWork[]> {
  return await countUnservedWork(tx, WEBHOOK_QUEUE_GROUP, QUEUE_POLICY.leaseMs, WAITING_MS)
}

/** Looks for such work every minute. @param onFound called with what was found, never with nothing */
export function unservedRegionMonitor(
  { pool }: Pick<Database, 'pool'>,
  onFound: (work: readonly UnservedWork[]) => void,
): PollLoopSpec {
  return {
    name: 'unserved-regions',
    intervalMs: CHECK_INTERVAL_MS,
    async runOnce() {
      const found = await findUnservedWork(pool)
      if (found.length > 0) onFound(found)
      return false
    },
  }
}
