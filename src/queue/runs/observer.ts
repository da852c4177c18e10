import type { Run, RunStatus, Tx } from '../../storage/index.ts'

/** A run that changed its status, as little of it as costs nothing at 10 000 ticks a second. */
export interface RunChange {
  readonly runId: string
  readonly environmentId: string
  readonly scheduledFor: Date
  readonly triggerId: string | null
  readonly status: RunStatus
  /** `null` unless skipped. */
  readonly skipReason: string | null
}

/** Is told about runs inside the transaction that changes them, so that events leave exactly when the change is real. */
export interface RunObserver {
  runsChanged(tx: Tx, changes: readonly RunChange[]): Promise<void>
}

/** The change of a run into what it is now. */
export function changeOf(run: Run): RunChange {
  const { id, environmentId, scheduledFor, triggerId, status, skipReason } = run
  return { runId: id, environmentId, scheduledFor, triggerId, status, skipReason }
}
