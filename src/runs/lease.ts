import { type Clock, Failure } from '../base/index.ts'
import { leaseLost } from './queue.ts'
import type { ClaimedRun } from './run.ts'

/**
 * A lease as its holder sees it, and how the work under it is told that this is over.
 *
 * It is counted from before the call that took or renewed it, so that it ends here before it ends there: a process that
 * slept, or cannot reach whoever grants leases, stops before another one begins.
 */
export class Lease {
  readonly #runId: string
  readonly #clock: Pick<Clock, 'sleep'>
  readonly #leaseMs: number
  readonly #work = new AbortController()
  #watch = new AbortController()
  #endsMs = 0

  /** @param askedMs monotonic time before the claim was sent */
  constructor(runId: string, clock: Pick<Clock, 'sleep'>, leaseMs: number, askedMs: number) {
    this.#runId = runId
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.renew(askedMs)
  }

  /** Aborts when the lease is lost, with LEASE_LOST, or when the work is interrupted. */
  get signal(): AbortSignal {
    return this.#work.signal
  }

  get isLost(): boolean {
    return isLeaseLost(this.signal.reason)
  }

  /** To be asked before anything is written: timers of a process that was suspended fire late. @throws Failure LEASE_LOST */
  assertHeld(): void {
    if (!this.isLost && performance.now() >= this.#endsMs) this.markLost()
    if (this.isLost) throw this.signal.reason
  }

  /** The lease was renewed by a call that began at `askedMs`. */
  renew(askedMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, askedMs + this.#leaseMs)
    this.#watch.abort()
    const watch = new AbortController()
    this.#watch = watch
    void this.#clock.sleep(Math.max(0, this.#endsMs - performance.now()), watch.signal).then(() => {
      if (!watch.signal.aborted) this.markLost()
    })
  }

  /** The lease is somebody else's, or may be. */
  markLost(): void {
    this.#watch.abort()
    this.#work.abort(leaseLost(this.#runId))
  }

  /** Ends the work although the lease holds. */
  interrupt(): void {
    this.#work.abort()
  }

  /** The work is over: the lease is not watched any more. */
  release(): void {
    this.#watch.abort()
  }
}

/** Tells whether the error says that a lease is lost. */
export function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.reason === 'LEASE_LOST'
}

/** Why an execution was told to end before it is done. */
export type StopCause = 'request' | 'drain'

/** A run this process holds, and why it is to end, if it is. */
export class HeldRun extends Lease {
  readonly run: ClaimedRun
  /** Set once the execution was told to end. */
  stopCause: StopCause | undefined

  /** @param askedMs monotonic time before the claim was sent */
  constructor(run: ClaimedRun, clock: Clock, leaseMs: number, askedMs: number) {
    super(run.id, clock, leaseMs, askedMs)
    this.run = run
  }

  get isOver(): boolean {
    return this.signal.aborted
  }

  /** For a drain without patience. */
  override interrupt(): void {
    this.stopCause = 'drain'
    super.interrupt()
  }
}
