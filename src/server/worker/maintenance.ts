import { type Clock, HOUR_MS, type PollLoopSpec } from '../../foundation/base/index.ts'
import {
  createComingDays,
  type Database,
  type DayRetentionDeps,
  type DayTable,
  dropOldDays,
} from '../../foundation/database/index.ts'
import { HEARTBEAT_INTERVAL_MS, REAP_INTERVAL_MS } from '../../foundation/queue/index.ts'
import { AUDIT_ENTRY_DAYS } from '../../platform/audit/index.ts'
import { CALL_LOG_DAYS } from '../../platform/call-log/index.ts'
import { CALL_HOUR_DAYS, foldFigures } from '../../platform/figures/index.ts'
import { deleteExpiredSlots, deleteIdleWindows } from '../../platform/limits/index.ts'
import { EVENT_DAYS } from '../../platform/outbox/index.ts'
import { deleteExpiredBrowserTokens, deleteOldIdempotencyKeys } from '../../platform/tenancy/index.ts'
import { RUN_DAY_TABLES, type RunQueue, touchWorker } from '../../sync/runs/index.ts'
import { TOOL_CALL_DAYS } from '../../tools/servers/index.ts'
import { INBOUND_CONTENT_DAYS, INBOUND_HISTORY_DAYS } from '../../webhooks/inbound/index.ts'
import { ATTEMPT_DAYS, DELIVERY_DAYS } from '../../webhooks/outbound/index.ts'

/** Time to live of an idempotency key. */
const BROWSER_TOKEN_KEEP_MS = 3_600_000
const IDEMPOTENCY_KEEP_MS = 24 * HOUR_MS
const IDEMPOTENCY_BATCH = 1_000
const CLEAN_INTERVAL_MS = 10 * 60 * 1000
/** Two of the longest windows: older counts do not matter. */
const WINDOW_KEEP_MS = 48 * HOUR_MS
const WINDOW_BATCH = 1_000
const FOLD_INTERVAL_MS = 2_000
const FOLD_BATCH = 5_000

/** Every table with partitions. */
const DAY_TABLES: readonly DayTable[] = [
  ...RUN_DAY_TABLES,
  EVENT_DAYS,
  DELIVERY_DAYS,
  ATTEMPT_DAYS,
  INBOUND_CONTENT_DAYS,
  ...INBOUND_HISTORY_DAYS,
  TOOL_CALL_DAYS,
  ...CALL_LOG_DAYS,
  AUDIT_ENTRY_DAYS,
  CALL_HOUR_DAYS,
]

/** Lease reaper: takes back expired leases. @param onExpired called with their number */
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

/** Worker heartbeat, by which waiting runs tell whether a worker takes them. @param regions whose runs it takes; absent: all */
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

/** Creates the partitions of the coming days, so that old days can be dropped as a whole. */
export function partitionMaintenance(database: Database, clock: Pick<Clock, 'now'>): PollLoopSpec {
  return {
    name: 'partitions',
    intervalMs: HOUR_MS,
    async runOnce() {
      for (const table of DAY_TABLES) await createComingDays({ database, clock }, table)
      return false
    },
  }
}

/** Tables of history, and how many whole days are kept; 0: forever. */
export interface DayRetention {
  /** Names the loop. */
  readonly name: string
  readonly tables: readonly DayTable[]
  readonly days: number
}

/** Drops history by whole days, one loop for each; none for what is kept forever. */
export function dayRetentions(deps: DayRetentionDeps, retentions: readonly DayRetention[]): readonly PollLoopSpec[] {
  return retentions
    .filter(({ days }) => days > 0)
    .map(({ name, tables, days }) => ({
      name: `${name}-retention`,
      intervalMs: CLEAN_INTERVAL_MS,
      async runOnce() {
        for (const table of tables) await dropOldDays(deps, table, days)
        return false
      },
    }))
}

/** Folds what has changed in figures into them, so that few rows are read. */
export function figureFolder(database: Database): PollLoopSpec {
  return {
    name: 'figures',
    intervalMs: FOLD_INTERVAL_MS,
    async runOnce() {
      return (await foldFigures(database.pool, FOLD_BATCH)) === FOLD_BATCH
    },
  }
}

/** Deletes idempotency keys after a day, in small batches. */
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

/** Deletes tokens of pages in browsers an hour after they expired, in small batches. */
export function browserTokenCleaner(database: Database, clock: Clock): PollLoopSpec {
  return {
    name: 'browser-tokens',
    intervalMs: CLEAN_INTERVAL_MS,
    async runOnce() {
      const before = new Date(clock.now().getTime() - BROWSER_TOKEN_KEEP_MS)
      return (await deleteExpiredBrowserTokens(database.pool, before, IDEMPOTENCY_BATCH)) === IDEMPOTENCY_BATCH
    },
  }
}

/** Deletes windows and expired slots of rate limits. */
export function rateLimitCleaner(database: Database): PollLoopSpec {
  return {
    name: 'budgets',
    intervalMs: CLEAN_INTERVAL_MS,
    async runOnce() {
      const idle = await deleteIdleWindows(database.pool, WINDOW_KEEP_MS, WINDOW_BATCH)
      const expired = await deleteExpiredSlots(database.pool, WINDOW_BATCH)
      return idle === WINDOW_BATCH || expired === WINDOW_BATCH
    },
  }
}
