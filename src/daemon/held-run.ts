import type { Clock } from '../base/index.ts'
import { Lease } from '../queue/index.ts'
import type { DaemonRun } from './claimed-run.ts'

/** A run this daemon holds, and whether it is to end. */
export class HeldDaemonRun extends Lease {
  readonly run: DaemonRun
  #isStopping = false

  /** @param askedMs monotonic time before the claim was sent */
  constructor(run: DaemonRun, clock: Clock, leaseMs: number, askedMs: number) {
    super(run.id, clock, leaseMs, askedMs)
    this.run = run
  }

  /** The run is to end at its next page: somebody asked for it, or the daemon drains. */
  get isStopping(): boolean {
    return this.#isStopping
  }

  stop(): void {
    this.#isStopping = true
  }

  /** For a drain that takes too long. */
  override interrupt(): void {
    this.stop()
    super.interrupt()
  }
}
