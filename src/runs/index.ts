/**
 * Work that outlives a process: what waits, who holds a lease on it, and how it ends. One seam, `enqueue · claim ·
 * heartbeat · settle · reap`, carries sync runs and whatever else needs a queue.
 *
 * Nothing here executes anything: workers and daemons do, and hand back an outcome.
 */

export {
  type ClaimedRuns,
  type ExecuteRun,
  type HeartbeatState,
  type LeaseAnswer,
  type LeasedRun,
  RunExecutor,
  type RunExecutorStats,
  type RunLeases,
  type SavedProgress,
} from './executor.ts'
export { type CompletedStatus, completedStatusOf, isStatsOf } from './incremental.ts'
export { isLeaseLost, type Lease } from './lease.ts'
export { type HeartbeatResult, leaseLost, type Outcome, queueGroupKey, RunQueue } from './queue.ts'
export { createQueueLeases } from './queue-leases.ts'
export { getRun, listRuns, type RunView, type WaitState } from './read-runs.ts'
export { HEARTBEAT_INTERVAL_MS, LEASE_EXPIRED, QUEUE_POLICY, REAP_INTERVAL_MS } from './retry-policy.ts'
export {
  type ClaimedRun,
  type DecidedEnding,
  daemonQueueGroup,
  type ErrorHandling,
  QUEUE_DEPTH_MAX,
  queueGroupOf,
  type ResourceStats,
  type Run,
  type RunDestination,
  type RunError,
  type RunOutcome,
  type RunProgress,
  type RunStatus,
} from './run.ts'
export { type CreateRunDeps, createRun, enqueueNewRun, type RunInput, retryRun, stopRun } from './run-actions.ts'
export {
  assertRunnable,
  destinationRequired,
  loadRunReferences,
  type RunReferences,
  webhookNotFound,
} from './run-references.ts'
export { RunWatch } from './run-watch.ts'
export { deleteRemainsOfEnvironment, deleteTriggersOf, stopRunsOfAccount } from './sql/cascade-delete.ts'
export {
  DAY_TABLES,
  type DayTable,
  deleteOrphanedCheckpoints,
  dropDay,
  emptyDefaultPartition,
  ensureDayPartitions,
  hasUnfinishedRuns,
  listDaysBefore,
} from './sql/day-partition.ts'
export { deleteExpiredPreviousRuns } from './sql/previous-run.ts'
export type { LeaseKey } from './sql/queue.ts'
export { destinationColumns, destinationFromColumns, findRun, findRuns, type RunFilter } from './sql/run.ts'
export { hasWebhook } from './sql/run-references.ts'
export { deleteWorker, touchWorker } from './sql/run-wait.ts'
export { countQueueDepth } from './sql/stats.ts'
export {
  deleteMissedTicks,
  findTicksWithRun,
  insertMissedTicks,
  listTickLedger,
  type NewTick,
  type TickLedgerEntry,
  type TriggerTicks,
} from './sql/tick.ts'
