import type { Clock } from '../base/index.ts'
import { HEARTBEAT_INTERVAL_MS, REAP_INTERVAL_MS, type RunQueue } from '../queue/index.ts'
import {
  DAY_TABLES,
  type Database,
  deleteExpiredSlots,
  deleteIdleWindows,
  deleteOldIdempotencyKeys,
  ensureDayPartitions,
  touchWorker,
} from '../storage/index.ts'
import type { PollLoopSpec } from './loop.ts'

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
      await touchWorker(database.pool, holder, regions, null)
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
