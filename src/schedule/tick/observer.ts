import type { RunObserver } from '../../queue/index.ts'
import type { Tx } from '../../storage/index.ts'

/** A trigger that could not do what its schedule asked. */
export interface TriggerFailure {
  readonly triggerId: string
  readonly environmentId: string
  readonly scheduledFor: Date
  /** Stable name: `account_needs_reauth`, `integration_disabled`, `parked`. */
  readonly reason: string
  readonly message: string
}

/** Is told about ticks inside the transaction that fires them. */
export interface ScheduleObserver extends RunObserver {
  /** Ticks that made no run because of the account or the expression; overlaps and full groups are not failures. */
  triggersFailed(tx: Tx, failures: readonly TriggerFailure[]): Promise<void>
}
