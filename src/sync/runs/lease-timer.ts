import { type Clock, Failure } from '../../foundation/base/index.ts'

/** Why an execution should end before it is done: a stop of the run was requested, or this process drains. */
export type StopCause = 'request' | 'drain'

/**
 * A lease on a run as its holder counts it, and the signal that ends the work under it.
 *
 * It is counted from before the call that took or renewed it, so it ends here before it ends for the grantor: a process
 * that was suspended, or cannot reach the grantor, stops before another holder begins.
 */
export class LeaseTimer<Run extends { readonly id: string }> {
  readonly run: Run
  readonly #clock: Pick<Clock, 'sleep'>
  readonly #leaseMs: number
  readonly #work = new AbortController()
  #expiryTimer = new AbortController()
  #endsMs = 0
  /** A request to stop the run outlives a drain. */
  #stopCause: StopCause | undefined

  /** @param requestedMs monotonic time before the claim was sent */
  constructor(run: Run, clock: Pick<Clock, 'sleep'>, leaseMs: number, requestedMs: number) {
    this.run = run
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.renew(requestedMs)
  }

  /** Aborts when the lease is lost, with LEASE_LOST, or when the work is interrupted. */
  get signal(): AbortSignal {
    return this.#work.signal
  }

  get isLost(): boolean {
    return isLeaseLost(this.signal.reason)
  }

  get stopCause(): StopCause | undefined {
    return this.#stopCause
  }

  /** Called before every write: timers of a process that was suspended fire late. @throws Failure LEASE_LOST */
  assertHeld(): void {
    if (!this.isLost && performance.now() >= this.#endsMs) this.markLost()
    if (this.isLost) throw this.signal.reason
  }

  /** The lease was renewed by a call that was sent at `requestedMs`. */
  renew(requestedMs: number): void {
    this.#endsMs = Math.max(this.#endsMs, requestedMs + this.#leaseMs)
    this.#expiryTimer.abort()
    const timer = new AbortController()
    this.#expiryTimer = timer
    void this.#clock.sleep(Math.max(0, this.#endsMs - performance.now()), timer.signal).then(() => {
      if (!timer.signal.aborted) this.markLost()
    })
  }

  /** The lease has ended, or may have: the work must not write any more. */
  markLost(): void {
    this.#expiryTimer.abort()
    this.#work.abort(leaseLost(this.run.id))
  }

  /** Asks the execution to end at its next page. */
  stop(cause: StopCause): void {
    if (this.#stopCause !== 'request') this.#stopCause = cause
  }

  /** Ends the execution now although the lease holds, for a drain that has reached its deadline. */
  interrupt(): void {
    this.stop('drain')
    this.#work.abort()
  }

  /** The work has ended: stops the expiry timer. */
  release(): void {
    this.#expiryTimer.abort()
  }
}

/** Tells whether the error says that a lease is lost. */
export function isLeaseLost(error: unknown): boolean {
  return error instanceof Failure && error.reason === 'LEASE_LOST'
}

/** LEASE_LOST: a write by a holder whose lease has ended. */
export function leaseLost(runId: string): Failure {
  const message = `the lease on run ${runId} has ended and may be another holder's; stop working on it`
  return new Failure('LEASE_LOST', message, { resource: { type: 'sync_job_run', id: runId } })
}
