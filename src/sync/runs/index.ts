/**
 * Runs of sync jobs: their queue, leases, executor, retry policy, retention, and what a caller sees of them. The queue is one
 * mechanism, `enqueue · claim · heartbeat · settle · reap`, for every kind of background work.
 *
 * Never here: what a run does (syncs), when it is created (schedules), which process executes it (worker, daemon-runner).
 */

export {
  type ClaimedRuns,
  type ExecutedRun,
  type ExecuteRun,
  type HeartbeatState,
  type LeaseAnswer,
  RunExecutor,
  type RunExecutorStats,
  type RunLeases,
  type SavedProgress,
} from './executor.ts'
export { isLeaseLost, type LeaseTimer, leaseLost } from './lease-timer.ts'
export { findUnservedWork, retention, unservedRegionMonitor } from './maintenance.ts'
export { createQueueLeases } from './queue-leases.ts'
export { getRun, listRuns, type RunView } from './read-runs.ts'
export {
  type ErrorHandling,
  GIVE_UP_AFTER_SECONDS_DEFAULT,
  type ParentRef,
  type QueuedRun,
  type ResourceStats,
  type RunDestination,
  type RunError,
  type RunStatus,
} from './run.ts'
export { type CreateRunDeps, createRun, type RunInput, retryRun, stopRun } from './run-actions.ts'
export { RunQueue } from './run-queue.ts'
export { RunWatch } from './run-watch.ts'
export { deleteRemainsOfEnvironment, triggerCascade } from './sql/cascade-delete.ts'
export { RUN_DAY_TABLES } from './sql/days.ts'
export type { RunFilter } from './sql/run.ts'
export { countRunBacklog } from './sql/run-queue.ts'
export { deleteWorker, touchWorker } from './sql/run-wait.ts'
export { countSealedPositions } from './sql/sealed-positions.ts'
export type { TickLedgerEntry } from './sql/tick.ts'
