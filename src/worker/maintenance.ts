import type { Clock, PollLoopSpec } from '../base/index.ts'
import { type Database, isLockTimeout, isStatementTimeout } from '../database/index.ts'
import { deleteExpiredSlots, deleteIdleWindows } from '../rate-limits/index.ts'
import {
  DAY_TABLES,
  type DayTable,
  deleteExpiredPreviousRuns,
  deleteOrphanedCheckpoints,
  dropDay,
  emptyDefaultPartition,
  ensureDayPartitions,
  HEARTBEAT_INTERVAL_MS,
  hasUnfinishedRuns,
  listDaysBefore,
  REAP_INTERVAL_MS,
  type RunQueue,
  touchWorker,
} from '../runs/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { deleteOldIdempotencyKeys } from '../tenancy/index.ts'

const HOUR_MS = 60 * 60 * 1000
/** Yesterday, for ticks caught up over midnight; today; and enough days ahead that a keeper may be away for a weekend. */
const DAYS_BEHIND = 1
const DAYS_AHEAD = 4
/** An idempotency key answers repetitions for so long. */
const IDEMPOTENCY_KEEP_MS = 24 * HOUR_MS
const IDEMPOTENCY_BATCH = 1_000
const CLEAN_INTERVAL_MS = 10 * 60 * 1000
/** Two of the longest windows: what was counted before counts for nothing. */
const BUDGET_KEEP_MS = 48 * HOUR_MS
const BUDGET_BATCH = 1_000

/** Takes back leases whose holders are gone, and tells how many those were. */
export function leaseReaper(queue: Pick<RunQueue, 'reap'>, onExpired: (leases: number) => void): PollLoopSpec {
  return {
    name: 'reap',
    intervalMs: REAP_INTERVAL_MS,
    async runOnce() {
      const expired = await queue.reap()
      onExpired(expired)
      return expired > 0
    },
  }
}

/** Lets runs that wait say whether there is a worker for them. @param regions whose runs it takes; absent: all */
export function workerPresence(database: Database, holder: string, regions: readonly string[] = []): PollLoopSpec {
  return {
    name: 'presence',
    intervalMs: HEARTBEAT_INTERVAL_MS,
    async runOnce() {
      await touchWorker(database.pool, holder, regions)
      return false
    },
  }
}

/** Makes the partitions of the days to come, so that old days can be dropped whole. */
export function partitionMaintenance(database: Database, clock: Clock): PollLoopSpec {
  return {
    name: 'partitions',
    intervalMs: HOUR_MS,
    async runOnce() {
      const firstDay = new Date(clock.now().getTime() - DAYS_BEHIND * 24 * HOUR_MS)
      const days = DAYS_BEHIND + 1 + DAYS_AHEAD
      for (const table of DAY_TABLES) await database.transaction((tx) => ensureDayPartitions(tx, table, firstDay, days))
      return false
    },
  }
}

/** Forgets idempotency keys after a day, in small batches. */
export function idempotencyCleaner(database: Database, clock: Clock): PollLoopSpec {
  return {
    name: 'idempotency-keys',
    intervalMs: CLEAN_INTERVAL_MS,
    async runOnce() {
      const before = new Date(clock.now().getTime() - IDEMPOTENCY_KEEP_MS)
      return (await deleteOldIdempotencyKeys(database.pool, before, IDEMPOTENCY_BATCH)) === IDEMPOTENCY_BATCH
    },
  }
}

/** Forgets counts and places of calls that nobody asks about any more. */
export function rateLimitCleaner(database: Database): PollLoopSpec {
  return {
    name: 'budgets',
    intervalMs: CLEAN_INTERVAL_MS,
    async runOnce() {
      const idle = await deleteIdleWindows(database.pool, BUDGET_KEEP_MS, BUDGET_BATCH)
      const expired = await deleteExpiredSlots(database.pool, BUDGET_BATCH)
      return idle === BUDGET_BATCH || expired === BUDGET_BATCH
    },
  }
}

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
      const previousRuns = await deleteExpiredPreviousRuns(direct, ROW_BATCH)
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
