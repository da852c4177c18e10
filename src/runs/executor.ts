import { type Clock, PollLoop } from '../base/index.ts'
import { isDatabaseUnavailable, logLoopErrors } from '../database/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'
import { HeldRun, isLeaseLost } from './lease.ts'
import type { Outcome, RunQueue, Settled } from './queue.ts'
import { HEARTBEAT_INTERVAL_MS, QUEUE_POLICY } from './retry-policy.ts'
import { type ClaimedRun, type ResourceStats, type RunOutcome, type RunProgress, WEBHOOK_QUEUE_GROUP } from './run.ts'
import { SettlementBatcher } from './settlement-batcher.ts'

/** Does what a run asks for; the sync engine, for a worker. */
export type ExecuteRun = (run: ClaimedRun, progress: RunProgress, signal: AbortSignal) => Promise<RunOutcome>

/** What an executor needs. */
export interface RunExecutorDeps {
  readonly queue: Pick<RunQueue, 'claim' | 'save' | 'heartbeat' | 'settle'>
  readonly executeRun: ExecuteRun
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
  /** Names this process in leases. */
  readonly holder: string
  /** Runs executed at once at most. */
  readonly concurrency: number
  /** Only runs of accounts that live in one of these. Absent: all. */
  readonly regions?: readonly string[] | undefined
}

/** What an executor has done. */
export interface RunExecutorStats {
  readonly running: number
  readonly claimed: number
  readonly settled: number
  /** The same, by what became of the runs. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly leasesLost: number
  /** Pages and records that were brought to their receivers. */
  readonly pages: number
  readonly records: number
}

/** The queue is looked at this often when nothing wakes the executor. */
const POLL_INTERVAL_MS = 1_000
/** Pause before the database is asked again while it is away. */
const UNAVAILABLE_PAUSE_MS = 250
/** Runs that were interrupted get this long to return before they are left to the reaper. */
const INTERRUPT_GRACE_MS = 5_000

/**
 * Executes webhook runs: claims as many as it has room for, keeps their leases alive, and settles how they end.
 *
 * At-least-once: a process that dies leaves its leases, and the reaper hands the runs on. Everything written for a run
 * names its lease, so that a process that was only asleep writes nothing.
 */
export class RunExecutor {
  readonly #deps: RunExecutorDeps
  readonly #settler: SettlementBatcher
  readonly #claims: PollLoop
  readonly #heartbeats: PollLoop
  /** By lease: a run that is taken again may still be ending under the lease before. */
  readonly #held = new Map<string, HeldRun>()
  #executions = new Set<Promise<void>>()
  #isDraining = false
  readonly #outcomes: Record<string, number> = {}
  #counts = { claimed: 0, settled: 0, leasesLost: 0, pages: 0, records: 0 }

  constructor(deps: RunExecutorDeps) {
    this.#deps = deps
    this.#settler = new SettlementBatcher(deps.queue)
    const claims = { name: 'claim', intervalMs: POLL_INTERVAL_MS, runOnce: () => this.claimOnce() }
    const heartbeats = { name: 'heartbeat', intervalMs: HEARTBEAT_INTERVAL_MS, runOnce: () => this.heartbeatOnce() }
    const loopDeps = { ...deps, onError: logLoopErrors(deps.logger) }
    this.#claims = new PollLoop(loopDeps, claims)
    this.#heartbeats = new PollLoop(loopDeps, heartbeats)
  }

  /** Begins to claim; later calls do nothing. */
  start(): void {
    this.#claims.start()
    this.#heartbeats.start()
  }

  /** Looks at the queue now. */
  wake(): void {
    this.#claims.wake()
  }

  get stats(): RunExecutorStats {
    return { ...this.#counts, outcomes: { ...this.#outcomes }, running: this.#held.size }
  }

  /** Claims what there is room for and begins to execute it. @returns whether there was more than that */
  async claimOnce(): Promise<boolean> {
    const { queue, holder, concurrency, regions } = this.#deps
    const room = concurrency - this.#held.size
    if (room <= 0 || this.#isDraining) return false
    const askedMs = performance.now()
    const claimed = await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder, limit: room, regions })
    this.#counts.claimed += claimed.length
    for (const run of claimed) this.#begin(run, askedMs)
    return claimed.length === room
  }

  /** Renews every lease in one statement. Leases nobody renews end here by themselves. */
  async heartbeatOnce(): Promise<boolean> {
    const askedMs = performance.now()
    const held = [...this.#held.values()].filter(({ isOver }) => !isOver)
    const answers = await this.#deps.queue.heartbeat(held.map(({ run }) => run))
    for (const [index, answer] of answers.entries()) {
      const asked = held[index]
      if (answer.kind === 'held') asked?.renew(askedMs)
      // A run that was settled in the meantime has no lease either.
      else if (asked !== undefined && this.#held.has(asked.run.leaseId)) asked.markLost()
    }
    return false
  }

  /**
   * Stops claiming, asks every execution to end at its next page and hands the runs back; after `deadlineMs` what still
   * goes on is interrupted, to be resumed by another process at its last checkpoint. No attempt is counted.
   */
  async drain(deadlineMs: number): Promise<void> {
    const { clock } = this.#deps
    this.#isDraining = true
    await this.#claims[Symbol.asyncDispose]()
    await waitAtMost(clock, Promise.all(this.#executions), deadlineMs)
    for (const held of this.#held.values()) held.interrupt()
    await waitAtMost(clock, Promise.all(this.#executions), INTERRUPT_GRACE_MS)
    await this.#heartbeats[Symbol.asyncDispose]()
  }

  #begin(run: ClaimedRun, askedMs: number): void {
    const held = new HeldRun(run, this.#deps.clock, QUEUE_POLICY.leaseMs, askedMs)
    this.#held.set(run.leaseId, held)
    const execution = this.#execute(held).finally(() => {
      held.release()
      this.#held.delete(run.leaseId)
      this.#executions.delete(execution)
      this.#claims.wake()
    })
    this.#executions.add(execution)
  }

  async #execute(held: HeldRun): Promise<void> {
    const outcome = await this.#outcome(held)
    const settled = outcome && (await this.#settle(held, outcome))
    if (settled?.kind === 'settled') {
      const { id, triggerId, integratedAccountId, attempt } = held.run
      const about = { run_id: id, trigger_id: triggerId, integrated_account_id: integratedAccountId, attempt }
      this.#deps.logger.info({ ...about, status: settled.status }, 'a run ended or was put back')
      this.#counts.settled++
      this.#outcomes[settled.status] = (this.#outcomes[settled.status] ?? 0) + 1
    } else this.#counts.leasesLost++
  }

  /** Undefined when the lease ran out first; the reaper then decides. */
  async #settle(held: HeldRun, outcome: Outcome): Promise<Settled | undefined> {
    const { run } = held
    try {
      return await this.#whileHeld(held, () => this.#settler.settle({ ...run, outcome }))
    } catch (error) {
      if (!isLeaseLost(error))
        this.#deps.logger.error({ run_id: run.id, ...describeError(error) }, 'a run was not settled')
      return undefined
    }
  }

  /** How the execution ended; undefined when the lease is lost and nothing may be said about it. */
  async #outcome(held: HeldRun): Promise<Outcome | undefined> {
    const { executeRun, logger } = this.#deps
    const { run } = held
    try {
      const outcome = await executeRun(run, this.#progress(held), held.signal)
      return settlementOutcome(outcome, held)
    } catch (error) {
      if (isLeaseLost(error) || isLeaseLost(held.signal.reason)) return undefined
      if (held.stopCause === 'drain' || isDatabaseUnavailable(error)) return { kind: 'handed_back' }
      logger.error({ run_id: run.id, ...describeError(error) }, 'the execution of a run failed unexpectedly')
      return { kind: 'retry', error: { reason: 'INTERNAL', message: 'the execution failed unexpectedly' } }
    }
  }

  #progress(held: HeldRun): RunProgress {
    let saved = held.run.resourceStats
    return {
      save: async (checkpoint, stats, ending) => {
        const askedMs = performance.now()
        const { isStopRequested } = await this.#whileHeld(held, () =>
          this.#deps.queue.save(held.run, checkpoint, stats, ending),
        )
        held.renew(askedMs)
        this.#counts.pages += sumOf(stats, 'pages') - sumOf(saved, 'pages')
        this.#counts.records += sumOf(stats, 'delivered') - sumOf(saved, 'delivered')
        saved = stats
        if (isStopRequested) held.stopCause = 'request'
        else if (this.#isDraining) held.stopCause = 'drain'
        return held.stopCause === undefined ? 'continue' : 'stop'
      },
    }
  }

  /**
   * Repeats a write until the database is there to answer, as long as the lease may be held. Every such write names its
   * lease, so that repeating one whose answer was lost does no harm.
   */
  async #whileHeld<Result>(held: HeldRun, write: () => Promise<Result>): Promise<Result> {
    for (;;) {
      held.assertHeld()
      try {
        return await write()
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error
        await this.#deps.clock.sleep(UNAVAILABLE_PAUSE_MS, held.isOver ? undefined : held.signal)
      }
    }
  }
}

/** The outcome for the queue: a run that ended because this process drains is not over. */
function settlementOutcome(outcome: RunOutcome, held: HeldRun): Outcome | undefined {
  if (isLeaseLost(held.signal.reason)) return undefined
  return outcome.kind === 'stopped' && held.stopCause === 'drain' ? { kind: 'handed_back' } : outcome
}

function sumOf(stats: readonly ResourceStats[], name: 'pages' | 'delivered'): number {
  return stats.reduce((sum, each) => sum + each[name], 0)
}

/** Waits for the work, but no longer than that. */
async function waitAtMost(clock: Clock, work: Promise<unknown>, ms: number): Promise<void> {
  const done = new AbortController()
  await Promise.race([work.finally(() => done.abort()), clock.sleep(ms, done.signal)])
}
