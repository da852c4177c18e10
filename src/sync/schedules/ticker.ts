import { type Clock, PollLoop } from '../../foundation/base/index.ts'
import { type Database, logLoopErrors } from '../../foundation/database/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import type { RunQueue } from '../runs/run-queue.ts'
import { CATCH_UP, type CatchUpPolicy } from './catch-up.ts'
import { fireDue, type PassReport } from './fire-due.ts'
import { QueueDepthCache } from './queue-depth-cache.ts'
import { SHARDS, ShardCursors } from './shard-cursors.ts'

/** What a ticker needs. */
export interface TickerDeps {
  readonly database: Database
  readonly queue: Pick<RunQueue, 'enqueueTicks' | 'countWaiting'>
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly catchUp?: CatchUpPolicy | undefined
  /** Only triggers whose account lives in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
  readonly onTicks?: ((latenessSeconds: readonly number[]) => void) | undefined
  /** Called after a pass that made runs, so that this process looks at its queue. */
  readonly onFired?: (() => void) | undefined
}

/** Counters of a ticker since it was created. */
export interface TickerStats {
  readonly passes: number
  readonly failedPasses: number
  readonly fired: number
  readonly skipped: Readonly<Record<string, number>>
  readonly missed: number
  readonly suspended: number
  /** Lateness of the oldest due tick at the last pass; grows while passes fail, so that a stalled schedule shows. */
  readonly oldestDueAgeSeconds: number
}

/** Longest pause: a tick that another process schedules meanwhile is late by no more. */
const PAUSE_MS_MAX = 1_000
/** Shortest pause: under steady load a pass then takes everything that came due meanwhile, instead of one row at a time. */
const PAUSE_MS_MIN = 50
/** Added to the pause at random, so that workers do not wake in step; every tick is late by it. */
const JITTER_MS_MAX = 20

/** Fires ticks, pass after pass, until it is disposed. A failed pass is repeated. */
export class Ticker {
  readonly #deps: TickerDeps
  readonly #cursors: ShardCursors
  readonly #depths: QueueDepthCache
  readonly #loop: PollLoop
  #stats: Omit<TickerStats, 'oldestDueAgeSeconds'> = {
    passes: 0,
    failedPasses: 0,
    fired: 0,
    skipped: {},
    missed: 0,
    suspended: 0,
  }
  #oldestDueAgeSeconds = 0
  #measuredMs = performance.now()
  #hasFailed = false

  constructor(deps: TickerDeps) {
    this.#deps = deps
    this.#cursors = new ShardCursors(Math.floor(deps.random() * SHARDS))
    this.#depths = new QueueDepthCache(deps.queue)
    const logError = logLoopErrors(deps.logger)
    this.#loop = new PollLoop(
      {
        ...deps,
        onError: (...failure) => {
          this.#hasFailed = true
          this.#stats = { ...this.#stats, failedPasses: this.#stats.failedPasses + 1 }
          return logError(...failure)
        },
      },
      { name: 'ticker', intervalMs: PAUSE_MS_MAX, runOnce: () => this.#passAndPause() },
    )
  }

  /** Begins the loop; later calls do nothing. */
  start(): void {
    this.#loop.start()
  }

  /** One pass. @throws errors of the database; the ticks that were not fired are still due */
  async runOnce(): Promise<PassReport> {
    const { catchUp = CATCH_UP, ...deps } = this.#deps
    const report = await fireDue({ ...deps, catchUp, depths: this.#depths }, this.#cursors)
    this.#record(report)
    for (const { triggerId, error } of report.suspended)
      this.#deps.logger.error(
        { trigger_id: triggerId, error },
        'a trigger is suspended: it fires again once it is changed or resumed',
      )
    if (report.fired > 0) this.#deps.onFired?.()
    return report
  }

  get stats(): TickerStats {
    const sinceSeconds = this.#hasFailed ? (performance.now() - this.#measuredMs) / 1000 : 0
    return { ...this.#stats, oldestDueAgeSeconds: this.#oldestDueAgeSeconds + sinceSeconds }
  }

  /** Ends the loop after the pass in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }

  /** @returns the pause before the next pass, ms */
  async #passAndPause(): Promise<number> {
    const beganMs = performance.now()
    const report = await this.runOnce()
    this.#hasFailed = false
    return pauseMs(report, performance.now() - beganMs, this.#deps.random)
  }

  #record(report: PassReport): void {
    const skipped: Record<string, number> = { ...this.#stats.skipped }
    for (const [reason, count] of Object.entries(report.skipped)) skipped[reason] = (skipped[reason] ?? 0) + count
    this.#stats = {
      ...this.#stats,
      passes: this.#stats.passes + 1,
      fired: this.#stats.fired + report.fired,
      skipped,
      missed: this.#stats.missed + report.missed,
      suspended: this.#stats.suspended + report.suspended.length,
    }
    this.#oldestDueAgeSeconds = report.oldestDueAgeSeconds
    this.#measuredMs = performance.now()
  }
}

/** Until the next tick by the database's clock, less what the pass took. */
function pauseMs({ nextDueAt, now }: PassReport, passMs: number, random: () => number): number {
  const untilMs = nextDueAt === undefined ? PAUSE_MS_MAX : nextDueAt.getTime() - now.getTime() - passMs
  return Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, untilMs)) + JITTER_MS_MAX * random()
}
