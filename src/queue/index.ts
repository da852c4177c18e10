/**
 * Work that outlives a process: what waits, who holds a lease on it, and how it ends. One seam, `enqueue · claim ·
 * heartbeat · settle · reap`, carries sync runs and whatever else needs a queue.
 *
 * Nothing here executes anything: workers and daemons do, and hand back an outcome.
 */
export type {
  ClaimedRun,
  DecidedEnding,
  ErrorHandling,
  LeaseKey,
  ResourceStats,
  Run,
  RunDestination,
  RunError,
  RunFilter,
  RunStatus,
} from '../storage/index.ts'
export { isLeaseLost, Lease } from './held-lease.ts'
export {
  HEARTBEAT_INTERVAL_MS,
  LEASE_EXPIRED,
  QUEUE_POLICY,
  REAP_INTERVAL_MS,
} from './policy.ts'
export type { Claim, HeartbeatResult, Outcome, Queue, Settled, Settlement } from './queue.ts'
export { type CreateRunDeps, createRun, enqueueNewRun, type RunInput } from './runs/create-run.ts'
export type { RunOutcome, RunProgress } from './runs/execution.ts'
export { type CompletedStatus, completedStatusOf, isStatsOf } from './runs/incremental.ts'
export { getRun, listRuns } from './runs/read-runs.ts'
export { daemonQueueGroup, QUEUE_DEPTH_MAX, queueGroupOf, WEBHOOK_QUEUE_GROUP } from './runs/run-group.ts'
export { leaseLost, queueGroupKey, RunQueue } from './runs/run-queue.ts'
export type { RunView, WaitState } from './runs/run-waiting.ts'
export { RunWatch } from './runs/run-watch.ts'
export { retryRun, stopRun } from './runs/steer-run.ts'
export {
  assertRunnable,
  destinationRequired,
  loadRunReferences,
  type RunReferences,
  webhookNotFound,
} from './runs/subject.ts'
export { TableQueue } from './table-queue.ts'
