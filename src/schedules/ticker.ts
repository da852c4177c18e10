import { type BackoffPolicy, backoffMs, type Clock } from '../base/index.ts'
import { type Database, isDatabaseUnavailable } from '../database/index.ts'
import type { RunQueue } from '../runs/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import { CATCH_UP, type CatchUpPolicy } from './catch-up.ts'
import { fireDue, type PassReport } from './fire-due.ts'
import { QueueDepthCache } from './queue-depth-cache.ts'
import { SHARDS, ShardCursors } from './shard-cursors.ts'

/** What a ticker needs. */
export interface TickerDeps {
  readonly database: Database
  readonly queue: Pick<RunQueue, 'enqueueTicks' | 'countWaiting'>
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
  readonly catchUp?: CatchUpPolicy | undefined
  /** Only triggers whose account lives in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
  /** Told how late ticks were; see `FireDueDeps`. */
  readonly onTicks?: ((latenessSeconds: readonly number[]) => void) | undefined
  /** Called after a pass that made runs, so that this process looks at its queue. */
  readonly onFired?: (() => void) | undefined
}

/** What a ticker has done and how it stands. */
export interface TickerStats {
  readonly passes: number
  readonly failedPasses: number
  readonly fired: number
  readonly skipped: Readonly<Record<string, number>>
  readonly missed: number
  readonly parked: number
  /** How late the latest trigger was at the last pass. Grows while passes fail: a stalled schedule shows. */
  readonly oldestDueAgeSeconds: number
}

/** Longest sleep: what another process schedules in the meantime is late by no more. */
const SLEEP_MS_MAX = 1_000
/** Shortest sleep: under steady load a pass then takes what came due in the meantime, instead of one row at a time. */
const SLEEP_MS_MIN = 50
/** Added to the sleep at random, so that workers do not wake in step; every tick is late by it. */
const JITTER_MS_MAX = 20
/** An outage ends the sleep between attempts within so much. */
const OUTAGE_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 2, maxMs: 1_000, jitterFloor: 0.5 }

/**
 * Fires ticks, pass after pass, until it is disposed. Nothing that goes wrong in a pass ends it: it waits and goes on.
 */
export class Ticker {
  readonly #deps: TickerDeps
  readonly #scan: ShardCursors
  readonly #room: QueueDepthCache
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #stats: Omit<TickerStats, 'oldestDueAgeSeconds'> = {
    passes: 0,
    failedPasses: 0,
    fired: 0,
    skipped: {},
    missed: 0,
    parked: 0,
  }
  #oldestDueAgeSeconds = 0
  #observedMs = performance.now()
  #failures = 0

  constructor(deps: TickerDeps) {
    this.#deps = deps
    this.#scan = new ShardCursors(Math.floor(deps.random() * SHARDS))
    this.#room = new QueueDepthCache(deps.queue)
  }

  /** Begins the loop; later calls do nothing. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** One pass. @throws whatever the database throws */
  async runOnce(): Promise<PassReport> {
    const { catchUp = CATCH_UP, ...deps } = this.#deps
    const report = await fireDue({ ...deps, catchUp, room: this.#room }, this.#scan)
    this.#note(report)
    for (const { triggerId, error } of report.parked)
      this.#deps.logger.error(
        { trigger_id: triggerId, error },
        'a trigger is parked: it fires again once it is changed or resumed',
      )
    if (report.fired > 0) this.#deps.onFired?.()
    return report
  }

  get stats(): TickerStats {
    const sinceSeconds = this.#failures === 0 ? 0 : (performance.now() - this.#observedMs) / 1000
    return { ...this.#stats, oldestDueAgeSeconds: this.#oldestDueAgeSeconds + sinceSeconds }
  }

  /** Ends the loop after the pass in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps
    while (!this.#stop.signal.aborted) await clock.sleep(await this.#passAndWait(), this.#stop.signal)
  }

  /** Makes a pass and says how long to sleep after it. */
  async #passAndWait(): Promise<number> {
    const { random, logger } = this.#deps
    const beganMs = performance.now()
    try {
      const report = await this.runOnce()
      this.#failures = 0
      return sleepMs(report, performance.now() - beganMs, random)
    } catch (error) {
      this.#failures++
      this.#stats = { ...this.#stats, failedPasses: this.#stats.failedPasses + 1 }
      if (!isDatabaseUnavailable(error)) logger.error(describeError(error), 'a pass over the schedules failed')
      else if (this.#failures === 1) logger.warn({}, 'the database is unavailable, ticks wait')
      return backoffMs(OUTAGE_BACKOFF, this.#failures, random)
    }
  }

  #note(report: PassReport): void {
    const skipped: Record<string, number> = { ...this.#stats.skipped }
    for (const [reason, count] of Object.entries(report.skipped)) skipped[reason] = (skipped[reason] ?? 0) + count
    this.#stats = {
      ...this.#stats,
      passes: this.#stats.passes + 1,
      fired: this.#stats.fired + report.fired,
      skipped,
      missed: this.#stats.missed + report.missed,
      parked: this.#stats.parked + report.parked.length,
    }
    this.#oldestDueAgeSeconds = report.oldestDueAgeSeconds
    this.#observedMs = performance.now()
  }
}

/** Until the next tick, or the longest sleep; by the database's clock, less what the pass took. */
function sleepMs({ nextDueAt, now }: PassReport, passMs: number, random: () => number): number {
  const untilMs = nextDueAt === undefined ? SLEEP_MS_MAX : nextDueAt.getTime() - now.getTime() - passMs
  return Math.min(SLEEP_MS_MAX, Math.max(SLEEP_MS_MIN, untilMs)) + JITTER_MS_MAX * random()
}
