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
export { HeldLease, isLeaseLost } from './held-lease.ts'
export {
  HEARTBEAT_INTERVAL_MS,
  LEASE_EXPIRED,
  QUEUE_POLICY,
  REAP_INTERVAL_MS,
} from './policy.ts'
export type { Claim, Heartbeat, Outcome, Queue, Settled, Settlement } from './queue.ts'
export { type CreateRunDeps, createRun, insertWaitingRun, type RunInput } from './runs/create-run.ts'
export type { RunOutcome, RunProgress } from './runs/execution.ts'
export { type Completion, completionOf, isOf } from './runs/incremental.ts'
export { getRun, listRuns } from './runs/read-runs.ts'
export { daemonGroup, GROUP_QUEUED_MAX, runGroup, WEBHOOK_GROUP } from './runs/run-group.ts'
export { groupId, leaseLost, RunQueue } from './runs/run-queue.ts'
export type { RunWaiting, ShownRun } from './runs/run-waiting.ts'
export { RunWatch } from './runs/run-watch.ts'
export { retryRun, stopRun } from './runs/steer-run.ts'
export {
  destinationRequired,
  requireRunnable,
  requireSubject,
  type Subject,
  webhookNotFound,
} from './runs/subject.ts'
export { TableQueue } from './table-queue.ts'
