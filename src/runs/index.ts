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
export { completedStatusOf, isStatsOf } from './incremental.ts'
export { HeldLease, isLeaseLost, leaseLost } from './lease.ts'
export { findUnservedWork, retention, unservedRegionMonitor } from './maintenance.ts'
export { type HeartbeatResult, type Outcome, Queue, type QueueDeps, type SettledWork, type TurnClaim } from './queue.ts'
export { createQueueLeases } from './queue-leases.ts'
export { getRun, listRuns, type RunView } from './read-runs.ts'
export {
  HEARTBEAT_INTERVAL_MS,
  LEASE_EXPIRED,
  QUEUE_POLICY,
  type QueuePolicy,
  REAP_INTERVAL_MS,
} from './retry-policy.ts'
export {
  type CompletedStatus,
  type DecidedEnding,
  daemonQueueGroup,
  type ErrorHandling,
  GIVE_UP_AFTER_SECONDS_DEFAULT,
  type ParentRef,
  QUEUE_DEPTH_MAX,
  type QueuedRun,
  queueGroupOf,
  type ResourceStats,
  type Run,
  type RunDestination,
  type RunError,
  type RunOutcome,
  type RunProgress,
  type RunStatus,
  type RunWarning,
} from './run.ts'
export {
  type CreateRunDeps,
  createRun,
  enqueueNewRun,
  type RunChecks,
  type RunInput,
  retryRun,
  stopRun,
} from './run-actions.ts'
export { failedTriggerPayload, type RunPayloadFields, runErrorFields, runPayload } from './run-payload.ts'
export { queueGroupKey, RunQueue } from './run-queue.ts'
export {
  assertRunnable,
  destinationRequired,
  loadRunReferences,
  webhookNotFound,
} from './run-references.ts'
export { RunWatch } from './run-watch.ts'
export { deleteRemainsOfEnvironment, deleteTriggersOf, triggersOfDeleted } from './sql/cascade-delete.ts'
export { RUN_DAY_TABLES } from './sql/days.ts'
export {
  type Backlog,
  countBacklog,
  insertWaitingSql,
  type LeaseKey,
  type QueuedItem,
  type QueueTable,
  type SettledItem,
} from './sql/queue.ts'
export type { Availability, KeyLimit } from './sql/round-robin-claim.ts'
export {
  type DestinationColumns,
  destinationColumns,
  findRun,
  findRuns,
  type RunFilter,
  withDestination,
} from './sql/run.ts'
export { countRunBacklog } from './sql/run-queue.ts'
export { hasWebhook } from './sql/run-references.ts'
export { deleteWorker, touchWorker } from './sql/run-wait.ts'
export { countSealedPositions } from './sql/sealed-positions.ts'
export {
  deleteMissedTicks,
  findTicksWithRun,
  insertMissedTicks,
  listTickLedger,
  type NewTick,
  type TickLedgerEntry,
} from './sql/tick.ts'
