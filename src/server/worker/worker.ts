import { type Clock, PollLoop, type PollLoopSpec, type Random } from '../../foundation/base/index.ts'
import { type Database, logLoopErrors } from '../../foundation/database/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import {
  createQueueLeases,
  deleteWorker,
  type ExecuteRun,
  type QueuedRun,
  RunExecutor,
  type RunExecutorStats,
  type RunQueue,
  retention,
} from '../../sync/runs/index.ts'
import { type CatchUpPolicy, Ticker, type TickerStats } from '../../sync/schedules/index.ts'
import {
  browserTokenCleaner,
  type DayRetention,
  dayRetentions,
  figureFolder,
  idempotencyCleaner,
  leaseReaper,
  partitionMaintenance,
  rateLimitCleaner,
  workerPresence,
} from './maintenance.ts'

/** What a worker is composed of. */
export interface WorkerDeps {
  readonly database: Database
  readonly queue: RunQueue
  readonly executeRun: ExecuteRun<Lease<QueuedRun>>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Names this process in leases, e.g. host and process id. */
  readonly holder: string
  /** Runs executed at once at most. */
  readonly concurrency: number
  /** Only triggers and runs of accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
  readonly catchUp?: CatchUpPolicy | undefined
  /** Called with the lateness of fired ticks, in seconds. */
  readonly onTicks?: ((latenessSeconds: readonly number[]) => void) | undefined
  /** Days that runs are kept. Absent or 0: forever. */
  readonly retentionDays?: number | undefined
  /** History that is dropped by whole days. */
  readonly dayRetentions?: readonly DayRetention[] | undefined
  /** Further work to do again and again, such as deliveries and token refresh. */
  readonly loops?: readonly PollLoopSpec[]
}

/** Counters of a worker since it was created. */
interface WorkerStats {
  readonly ticker: TickerStats
  readonly runs: RunExecutorStats
  /** Expired leases that were taken back. */
  readonly leasesExpired: number
}

/** A worker process: ticks, runs to webhooks, and maintenance. */
export interface Worker extends AsyncDisposable {
  start(): void
  readonly stats: WorkerStats
  /** Graceful shutdown: nothing new begins, runs end at their next page and are released to other workers. */
  drain(deadlineMs: number): Promise<void>
}

/**
 * Creates a worker. Any number of them, on any number of hosts, share one database; killing one loses nothing.
 */
export function createWorker(deps: WorkerDeps): Worker {
  const { database, queue, clock, retentionDays = 0 } = deps
  const loopDeps = { ...deps, onError: logLoopErrors(deps.logger) }
  const executor = new RunExecutor({
    ...loopDeps,
    leases: createQueueLeases(queue, deps),
    logFields: ({ triggerId, integratedAccountId }) => ({
      trigger_id: triggerId,
      integrated_account_id: integratedAccountId,
    }),
  })
  const ticker = new Ticker({ ...deps, onFired: () => executor.wake() })
  let leasesExpired = 0
  const specs = [
    leaseReaper(queue, (leases) => (leasesExpired += leases)),
    workerPresence(database, deps.holder, deps.regions),
    partitionMaintenance(database, clock),
    idempotencyCleaner(database, clock),
    browserTokenCleaner(database, clock),
    rateLimitCleaner(database),
    figureFolder(database),
    ...(retentionDays > 0 ? [retention(deps, retentionDays)] : []),
    ...dayRetentions(deps, deps.dayRetentions ?? []),
    ...(deps.loops ?? []),
  ]
  const loops = specs.map((spec) => new PollLoop(loopDeps, spec))
  return {
    start() {
      for (const each of [...loops, ticker, executor]) each.start()
    },
    get stats() {
      return { ticker: ticker.stats, runs: executor.stats, leasesExpired }
    },
    async drain(deadlineMs) {
      await ticker[Symbol.asyncDispose]()
      await executor.drain(deadlineMs)
      for (const loop of loops) await loop[Symbol.asyncDispose]()
      await deleteWorker(database.pool, deps.holder).catch(() => undefined) // other workers delete it in time
    },
    async [Symbol.asyncDispose]() {
      await this.drain(0)
    },
  }
}
