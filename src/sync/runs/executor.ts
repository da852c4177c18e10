import type { JsonObject } from '../../foundation/json/index.ts'
import type { HeartbeatResult, Outcome } from '../../foundation/queue/index.ts'
import { type Lease, LeasedWork, type LeasedWorkDeps } from '../../foundation/queue/index.ts'
import { describeError, type Logger } from '../../foundation/telemetry/index.ts'
import { isLeaseLost, LeaseTimer } from './lease-timer.ts'
import type { ResourceStats, RunEnding, RunOutcome, RunProgress } from './run.ts'
import { runErrorFields } from './run-payload.ts'

/** What the executor reads of a run it holds. */
export interface ExecutedRun {
  readonly id: string
  /** From 1. */
  readonly attempt: number
  /** Counters of earlier attempts, which count nothing here. */
  readonly resourceStats: readonly Pick<ResourceStats, 'pages' | 'delivered'>[]
}

/** How far an execution has come; see `RunProgress`. */
export interface SavedProgress {
  readonly checkpoint: JsonObject
  readonly stats: readonly ResourceStats[]
  readonly ending: RunEnding | undefined
}

/** Where runs are leased: the queue of the database for a worker, the API of the service for a daemon. */
export interface RunLeases<Run extends Lease<ExecutedRun>> {
  /** Leases are renewed this often. */
  readonly heartbeatIntervalMs: number
  /** Progress is saved after a page, but no oftener; the last one in any case. */
  readonly saveIntervalMs: number
  /**
   * Leases up to `limit` runs.
   *
   * @param signal aborts a claim that waits, in a drain
   * @returns `leaseMs` as counted from before the call; `hasMore`: the next claim should follow at once
   */
  claim(limit: number, signal: AbortSignal): Promise<ClaimedRuns<Run>>
  /** Renews leases in one call. @returns one answer per run, in their order */
  heartbeat(runs: readonly Run[], state: HeartbeatState): Promise<readonly LeaseAnswer[]>
  /** Stores progress and renews the lease. @throws Failure LEASE_LOST */
  save(run: Run, progress: SavedProgress): Promise<{ readonly isStopRequested: boolean }>
  /** See `RunProgress.showWait`. @throws Failure LEASE_LOST where the grantor says so; otherwise a lost lease shows nothing */
  showWait(run: Run, ms: number): Promise<void>
  /** Ends the lease. @returns the status of the run; `undefined` when the lease was lost. @throws Failure LEASE_LOST */
  settle(run: Run, outcome: Outcome): Promise<string | undefined>
  /** How long to wait before a failed `save` or `settle` is repeated, ms; `undefined` for an error that would repeat itself. */
  retryDelayMs(error: unknown, failures: number): number | undefined
}

/** Answer to a claim. */
export interface ClaimedRuns<Run> {
  readonly runs: readonly Run[]
  readonly leaseMs: number
  readonly hasMore: boolean
}

/** What a heartbeat says beside the leases. */
export interface HeartbeatState {
  readonly isDraining: boolean
  readonly signal: AbortSignal
}

/** Whether a lease was renewed, and whether its run should end. */
export interface LeaseAnswer {
  readonly kind: HeartbeatResult['kind']
  readonly isStopRequested?: boolean
}

/** Does what a run asks for: the sync engine with its source and sink. */
export type ExecuteRun<Run extends { readonly id: string }> = (
  run: Run,
  progress: RunProgress,
  lease: Pick<LeaseTimer<Run>, 'signal' | 'assertHeld'>,
) => Promise<RunOutcome>

/** What an executor needs. */
export interface RunExecutorDeps<Run extends Lease<ExecutedRun>> extends LeasedWorkDeps {
  readonly leases: RunLeases<Run>
  readonly executeRun: ExecuteRun<Run>
  readonly logger: Logger
  /** Fields of the run for the log, beside its id and attempt. */
  readonly logFields?: (run: Run) => Readonly<Record<string, unknown>>
  /** Runs executed at once at most. */
  readonly concurrency: number
}

/** What an executor has done. */
export interface RunExecutorStats {
  readonly running: number
  readonly claimed: number
  readonly settled: number
  /** The same, by status of the run. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly leasesLost: number
  /** Pages and records that were delivered. */
  readonly pages: number
  readonly records: number
}

/** Pause between claims that found nothing, when nothing wakes the executor. */
const POLL_INTERVAL_MS = 1_000
/** A claim that waits is aborted so long after a drain begins, if it has not returned by then. */
const CLAIM_GRACE_MS = 2_000
/** A claim that took a larger share of the lease is followed by a heartbeat at once: the leases began at an unknown moment of it. */
const SLOW_CLAIM_SHARE = 0.1

/**
 * Run executor, the same for workers and daemons: claims as many runs as it has capacity for, keeps their leases alive,
 * executes them and settles how they ended.
 *
 * At-least-once: a process that dies leaves its leases to expire, and another one resumes the runs at their last checkpoint.
 * Everything written for a run names its lease, so a process that was suspended meanwhile writes nothing.
 */
export class RunExecutor<Run extends Lease<ExecutedRun>> implements AsyncDisposable {
  readonly #deps: RunExecutorDeps<Run>
  readonly #work: LeasedWork
  /** By lease: a run that is claimed again may still be ending under the lease before. */
  readonly #held = new Map<string, LeaseTimer<Run>>()
  readonly #draining = new AbortController()
  readonly #claimAbort = new AbortController()
  readonly #ended = new AbortController()
  readonly #outcomes: Record<string, number> = {}
  #counts = { claimed: 0, settled: 0, leasesLost: 0, pages: 0, records: 0 }

  constructor(deps: RunExecutorDeps<Run>) {
    const { leases } = deps
    this.#deps = deps
    const claims = { name: 'claim', intervalMs: POLL_INTERVAL_MS, runOnce: () => this.claimOnce() }
    const heartbeats = {
      name: 'heartbeat',
      get intervalMs() {
        return leases.heartbeatIntervalMs
      },
      runOnce: () => this.heartbeatOnce(),
    }
    this.#work = new LeasedWork(deps, claims, [heartbeats])
  }

  /** Begins to claim; later calls change nothing. */
  start(): void {
    this.#work.start()
  }

  /** Resolves when a started executor has drained; rejects when its loops' `onError` throws. */
  async ended(): Promise<void> {
    await this.#work.ended()
  }

  /** Claims now. */
  wake(): void {
    this.#work.wake()
  }

  get stats(): RunExecutorStats {
    return { ...this.#counts, outcomes: { ...this.#outcomes }, running: this.#held.size }
  }

  /** Claims up to the capacity and begins to execute. @returns whether to claim again at once */
  async claimOnce(): Promise<boolean> {
    const capacity = this.#deps.concurrency - this.#held.size
    if (capacity <= 0 || this.#isDraining) return false
    const requestedMs = performance.now()
    const { runs, leaseMs, hasMore } = await this.#deps.leases.claim(capacity, this.#claimAbort.signal)
    this.#counts.claimed += runs.length
    for (const run of runs) this.#begin(new LeaseTimer(run, this.#deps.clock, leaseMs, requestedMs))
    const isSlow = performance.now() - requestedMs > leaseMs * SLOW_CLAIM_SHARE
    if (runs.length > 0 && isSlow) this.#work.wakeBeside()
    return hasMore
  }

  /** Renews every lease in one call; a lease that is not renewed ends here by itself. */
  async heartbeatOnce(): Promise<boolean> {
    const requestedMs = performance.now()
    const held = [...this.#held.values()].filter(({ isLost }) => !isLost)
    const state = { isDraining: this.#isDraining, signal: this.#ended.signal }
    const answers = await this.#deps.leases.heartbeat(
      held.map(({ run }) => run),
      state,
    )
    for (const [index, { kind, isStopRequested }] of answers.entries()) {
      const each = held[index]
      // A run that was settled in the meantime has no lease either.
      if (each === undefined || !this.#held.has(each.run.leaseId)) continue
      if (kind === 'held') each.renew(requestedMs)
      else each.markLost()
      if (isStopRequested === true) each.stop('request')
    }
    return false
  }

  /**
   * Drains: claims nothing more and asks every execution to end at its next page, which releases its run; after
   * `deadlineMs` interrupts the rest, which then resume elsewhere at their last checkpoint. No attempt is counted.
   */
  async drain(deadlineMs: number): Promise<void> {
    const { clock } = this.#deps
    this.#draining.abort()
    this.#work.wakeBeside()
    const isOver = new AbortController()
    void clock.sleep(Math.min(CLAIM_GRACE_MS, deadlineMs), isOver.signal).then(() => this.#claimAbort.abort())
    await this.#work.finish(deadlineMs, () => {
      for (const held of this.#held.values()) held.interrupt()
    })
    for (const held of this.#held.values()) held.markLost()
    isOver.abort()
    this.#ended.abort()
    await this.#work[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0)
  }

  get #isDraining(): boolean {
    return this.#draining.signal.aborted
  }

  #begin(held: LeaseTimer<Run>): void {
    const { leaseId } = held.run
    this.#held.set(leaseId, held)
    this.#work.begin({ run_id: held.run.id }, this.#execute(held), () => {
      held.release()
      this.#held.delete(leaseId)
      this.#work.wake()
    })
  }

  async #execute(held: LeaseTimer<Run>): Promise<void> {
    const { logger, logFields } = this.#deps
    const { run } = held
    const outcome = await this.#outcome(held)
    const status = outcome && (await this.#settle(held, outcome))
    const fields = { run_id: run.id, attempt: run.attempt, ...logFields?.(run) }
    if (outcome === undefined || status === undefined) {
      this.#counts.leasesLost++
      logger.warn({ ...fields, outcome: 'lost' }, 'a run ended here')
    } else {
      this.#counts.settled++
      this.#outcomes[status] = (this.#outcomes[status] ?? 0) + 1
      const ended = { ...fields, outcome: outcome.kind, status }
      if ('error' in outcome) logger.warn({ ...ended, ...runErrorFields(outcome.error) }, 'a run ended here')
      else logger.info(ended, 'a run ended here')
    }
  }

  /** How the execution ended; `undefined` when the lease is lost and nothing may be written about it. */
  async #outcome(held: LeaseTimer<Run>): Promise<Outcome | undefined> {
    const { executeRun, leases, logger } = this.#deps
    const progress = new ProgressWriter(this.#deps, held, this.#draining.signal, (saved) => this.#count(saved))
    try {
      const outcome = await executeRun(held.run, progress, held)
      if (held.isLost) return undefined
      await progress.flush()
      return outcome.kind === 'stopped' && held.stopCause === 'drain' ? { kind: 'released' } : outcome
    } catch (error) {
      if (isLeaseLost(error) || held.isLost) return undefined
      if (held.signal.aborted || leases.retryDelayMs(error, 1) !== undefined) return { kind: 'released' }
      logger.error({ run_id: held.run.id, ...describeError(error) }, 'the execution of a run failed unexpectedly')
      return { kind: 'retry', error: { reason: 'INTERNAL', message: 'the execution failed unexpectedly' } }
    } finally {
      await progress.waitShown
    }
  }

  /** Ends the lease. @returns `undefined` when it was lost first: then the run is another holder's */
  async #settle(held: LeaseTimer<Run>, outcome: Outcome): Promise<string | undefined> {
    try {
      return await retryWhileHeld(this.#deps, held, () => this.#deps.leases.settle(held.run, outcome))
    } catch (error) {
      if (!isLeaseLost(error))
        this.#deps.logger.error({ run_id: held.run.id, ...describeError(error) }, 'a run was not settled')
      return undefined
    }
  }

  #count({ pages, records }: { readonly pages: number; readonly records: number }): void {
    this.#counts.pages += pages
    this.#counts.records += records
  }
}

type WriteDeps<Run extends Lease<ExecutedRun>> = Pick<RunExecutorDeps<Run>, 'leases' | 'clock' | 'logger'>

/** Saves progress after a page, at most once per `saveIntervalMs`. What is not saved is done again by the next holder. */
class ProgressWriter<Run extends Lease<ExecutedRun>> implements RunProgress {
  readonly #deps: WriteDeps<Run>
  readonly #held: LeaseTimer<Run>
  readonly #draining: AbortSignal
  readonly #onSaved: (added: { readonly pages: number; readonly records: number }) => void
  #savedStats: ExecutedRun['resourceStats']
  #savedMs = Number.NEGATIVE_INFINITY
  #unsaved: SavedProgress | undefined
  /** The last write of `showWait`; never rejects. */
  waitShown: Promise<void> = Promise.resolve()

  constructor(
    deps: WriteDeps<Run>,
    held: LeaseTimer<Run>,
    draining: AbortSignal,
    onSaved: (added: { readonly pages: number; readonly records: number }) => void,
  ) {
    this.#deps = deps
    this.#held = held
    this.#draining = draining
    this.#onSaved = onSaved
    this.#savedStats = held.run.resourceStats
  }

  async save(...[checkpoint, stats, ending]: Parameters<RunProgress['save']>): Promise<'continue' | 'stop'> {
    this.#unsaved = { checkpoint, stats, ending }
    const isDue = performance.now() >= this.#savedMs + this.#deps.leases.saveIntervalMs
    const isLast = ending !== undefined || this.#held.stopCause !== undefined || this.#draining.aborted
    if (isDue || isLast) await this.flush()
    if (this.#draining.aborted) this.#held.stop('drain')
    return this.#held.stopCause === undefined ? 'continue' : 'stop'
  }

  showWait(ms: number): void {
    const { leases, logger } = this.#deps
    const { run } = this.#held
    this.waitShown = leases
      .showWait(run, ms)
      .catch((error) => logger.warn({ run_id: run.id, ...describeError(error) }, 'the wait of a run is not shown'))
  }

  /** Saves what is not saved yet. @throws Failure LEASE_LOST */
  async flush(): Promise<void> {
    const progress = this.#unsaved
    if (progress === undefined) return
    const { isStopRequested } = await retryWhileHeld(this.#deps, this.#held, async () => {
      const requestedMs = performance.now()
      const answer = await this.#deps.leases.save(this.#held.run, progress)
      this.#held.renew(requestedMs)
      return answer
    })
    this.#unsaved = undefined
    this.#savedMs = performance.now()
    if (isStopRequested) this.#held.stop('request')
    this.#onSaved({
      pages: sumOf(progress.stats, 'pages') - sumOf(this.#savedStats, 'pages'),
      records: sumOf(progress.stats, 'delivered') - sumOf(this.#savedStats, 'delivered'),
    })
    this.#savedStats = progress.stats
  }
}

/**
 * Repeats a write through an outage for as long as the lease holds. Every such write names its lease, so repeating one
 * whose answer was lost does no harm.
 *
 * @throws Failure LEASE_LOST
 */
async function retryWhileHeld<Run extends Lease<ExecutedRun>, Result>(
  { leases, clock }: WriteDeps<Run>,
  held: LeaseTimer<Run>,
  write: () => Promise<Result>,
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    held.assertHeld()
    try {
      return await write()
    } catch (error) {
      if (isLeaseLost(error)) held.markLost()
      const delayMs = isLeaseLost(error) ? undefined : leases.retryDelayMs(error, failures)
      if (delayMs === undefined) throw error
      // An interrupted run still has to be released: then its signal ends no sleep any more.
      await clock.sleep(delayMs, held.signal.aborted ? undefined : held.signal)
    }
  }
}

function sumOf(stats: ExecutedRun['resourceStats'], name: 'pages' | 'delivered'): number {
  return stats.reduce((sum, each) => sum + each[name], 0)
}
