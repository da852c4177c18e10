import { type Clock, Failure } from '../base/index.ts'
import type { ClaimedRun } from './claimed-run.ts'

/**
 * A run this daemon holds a lease on, and how its execution is told that this is over.
 *
 * The lease is counted from before the call that took or renewed it, so that it ends here before it ends at the service: a
 * daemon that slept, or cannot reach the service, stops before another one begins.
 */
export class HeldRun {
  readonly run: ClaimedRun
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #execution = new AbortController()
  #watch = new AbortController()
  #endsMs = 0
  #isStopping = false

  /** @param askedMs monotonic time before the claim was sent */
  constructor(run: ClaimedRun, clock: Clock, leaseMs: number, askedMs: number) {
    this.run = run
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.renew(askedMs)
  }

  /** Aborts when the lease is lost, with LEASE_LOST, or when a drain runs out of time. */
  get signal(): AbortSignal {
    return this.#execution.signal
  }

  get isLost(): boolean {
    return isLeaseLost(this.signal.reason)
  }

  /** The run is to end at its next page: somebody asked for it, or the daemon drains. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  stop(): void {
    this.#isStopping = true
  }

  /**
   * To be asked before anything is written: timers of a process that was suspended fire late.
   *
   * @throws Failure LEASE_LOST
   */
  require(): void {
    if (!this.isLost && performance.now() >= this.#endsMs) this.lose()
    if (this.isLost) throw this.signal.reason
  }

  /** The lease was renewed by a call that began at `askedMs`. */
  renew(askedMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, askedMs + this.#leaseMs)
    this.#watch.abort()
    const watch = new AbortController()
    this.#watch = watch
    void this.#clock.sleep(Math.max(0, this.#endsMs - performance.now()), watch.signal).then(() => {
      if (!watch.signal.aborted) this.lose()
    })
  }

  /** The lease is somebody else's, or may be. */
  lose(): void {
    this.#watch.abort()
    this.#execution.abort(leaseLost(this.run.id))
  }

  /** Ends the execution although the lease holds, for a drain that takes too long. */
  interrupt(): void {
    this.#isStopping = true
    this.#execution.abort()
  }

  /** The execution is over: the lease is not watched any more. */
  release(): void {
    this.#watch.abort()
  }
}

/** What whoever writes for a run that is no longer theirs is told. */
export function leaseLost(runId: string): Failure {
  return new Failure('LEASE_LOST', `the lease on run ${runId} is lost`)
}

/** Tells whether the error says so. */
export function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.reason === 'LEASE_LOST'
}
