import type { Clock } from '../base/index.ts'
import { type ClaimedRun, Lease } from '../queue/index.ts'

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
