import { type BackoffPolicy, backoffMs } from '../base/backoff.ts'
import { type Clock, withTimeout } from '../base/clock.ts'
import { PollLoop, type PollLoopDeps, type PollLoopSpec } from '../base/poll-loop.ts'
import { isDatabaseUnavailable } from '../database/errors.ts'
import { describeError, type Logger } from '../telemetry/logger.ts'

/** What a process needs to work on leases. */
export interface LeasedWorkDeps extends PollLoopDeps {
  readonly clock: Clock
  readonly logger: Pick<Logger, 'error'>
}

/** Work that was interrupted gets this long to end before its leases are left to expire. */
const INTERRUPT_GRACE_MS = 5_000
/** Pause before a settlement is repeated while the database is unavailable. */
const OUTAGE_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 2, maxMs: 2_000, jitterFloor: 0.5 }

/**
 * The work of one process on the leases of a queue: the loop that claims them, loops beside it that renew them or take expired ones
 * back, and the work under way, for which a drain waits.
 *
 * At-least-once: a process that dies leaves its leases to expire, and another one does the work again.
 */
export class LeasedWork implements AsyncDisposable {
  readonly #deps: LeasedWorkDeps
  readonly #claims: PollLoop
  readonly #beside: readonly PollLoop[]
  readonly #underWay = new Set<Promise<void>>()

  constructor(deps: LeasedWorkDeps, claims: PollLoopSpec, beside: readonly PollLoopSpec[]) {
    this.#deps = deps
    this.#claims = new PollLoop(deps, claims)
    this.#beside = beside.map((spec) => new PollLoop(deps, spec))
  }

  /** Begins; later calls change nothing. */
  start(): void {
    for (const loop of [this.#claims, ...this.#beside]) loop.start()
  }

  /** Claims now. */
  wake(): void {
    this.#claims.wake()
  }

  /** Begins a round of the loops beside now. */
  wakeBeside(): void {
    for (const loop of this.#beside) loop.wake()
  }

  /** How many leases are worked on or being settled. */
  get count(): number {
    return this.#underWay.size
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Resolves when the started loops have ended; rejects when their `onError` throws. */
  async ended(): Promise<void> {
    await Promise.race([this.#claims, ...this.#beside].map((loop) => loop.ended))
    await Promise.all(this.#beside.map((loop) => loop.ended))
  }

  /** Takes on the work under a lease. @param fields for the log, when it throws @param onEnded called when it is no longer counted */
  begin(fields: Readonly<Record<string, unknown>>, work: Promise<void>, onEnded: () => void): void {
    const ended = work
      .catch((error: unknown) =>
        this.#deps.logger.error({ ...fields, ...describeError(error) }, 'leased work was not settled'),
      )
      .then(() => {
        this.#underWay.delete(ended)
        onEnded()
      })
    this.#underWay.add(ended)
  }

  /**
   * Settles through an outage of the database, for as long as the lease holds: a settlement names its lease, so that repeating
   * one whose answer was lost does no harm.
   *
   * @param endsMs `Clock.monotonicMs` at the end of the lease, counted from before the claim
   * @returns `undefined`: the lease ended before
   */
  async settle<Result>(endsMs: number, settle: () => Promise<Result>): Promise<Result | undefined> {
    const { clock, random } = this.#deps
    for (let failures = 1; clock.monotonicMs() < endsMs; failures++) {
      try {
        return await settle()
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error
        await clock.sleep(backoffMs(OUTAGE_BACKOFF, failures, random))
      }
    }
    return undefined
  }

  /** Claims nothing more and waits for the work under way until the deadline; then interrupts it, and waits a moment more. */
  async finish(deadlineMs: number, interrupt?: () => void): Promise<void> {
    const { clock } = this.#deps
    const finished = this.#claims[Symbol.asyncDispose]().then(() => this.idle())
    await withTimeout(clock, finished, deadlineMs)
    if (interrupt === undefined) return
    interrupt()
    await withTimeout(clock, finished, INTERRUPT_GRACE_MS)
  }

  /** Ends the loops; what is under way goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#claims, ...this.#beside].map((loop) => loop[Symbol.asyncDispose]()))
  }
}
