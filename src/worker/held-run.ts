import type { Clock } from '../base/index.ts'
import { type ClaimedRun, leaseLost } from '../queue/index.ts'

/** Why an execution was told to end before it is done. */
export type StopCause = 'request' | 'drain'

/**
 * A run this process holds a lease on, and how its execution is told that this is over.
 *
 * The lease is counted here from before the call that took or renewed it, so that it ends here before it ends in the
 * database: a process that slept, or cannot reach the database, aborts before another one begins.
 */
export class HeldRun {
  readonly run: ClaimedRun
  /** Set once the execution was told to end. */
  stopCause: StopCause | undefined
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #execution = new AbortController()
  #watch = new AbortController()

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

  get isOver(): boolean {
    return this.#execution.signal.aborted
  }

  /** The lease was renewed by a call that began at `askedMs`. */
  renew(askedMs: number): void {
    this.#watch.abort()
    const watch = new AbortController()
    this.#watch = watch
    const restMs = Math.max(0, askedMs + this.#leaseMs - performance.now())
    void this.#clock.sleep(restMs, watch.signal).then(() => {
      if (!watch.signal.aborted) this.lose()
    })
  }

  /** The lease is somebody else's, or may be. */
  lose(): void {
    this.#watch.abort()
    this.#execution.abort(leaseLost(this.run.id))
  }

  /** Ends the execution although the lease holds, for a drain without patience. */
  interrupt(): void {
    this.stopCause = 'drain'
    this.#execution.abort()
  }

  /** The execution is over: the lease is not watched any more. */
  release(): void {
    this.#watch.abort()
  }
}
