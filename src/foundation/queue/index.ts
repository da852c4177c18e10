/**
 * Work that waits. Claim, lease, fence, attempts, regions and settlement are the same for all of it:
 * - queues of two tables (`foundation/queue/queue.ts`), whose claims are fair between concurrency keys: runs, deliveries, inbound events;
 * - rows that come due (`foundation/queue/sql/due.ts`), a `DueTable` and a function from a lease to its result: activations, token refreshes,
 *   removals, subscriptions;
 * - tasks (`foundation/queue/tasks/`): work that a call starts and workers do in small steps, with progress and cancel.
 *
 * Ticks, sync hints, warnings and silence are done in the transaction that claims them: the lock of the row is the lease. Context values on
 * their way to the object store need no fence: storing one twice is harmless.
 *
 * Never here: what the work is, and its other columns.
 */

export { LeasedWork, type LeasedWorkDeps } from './leased-work.ts'
export type { CompletedStatus, DecidedEnding, Outcome, WorkError, WorkOutcome } from './outcome.ts'
export {
  type Claim,
  type HeartbeatResult,
  Queue,
  type QueueDeps,
  type Settled,
  type SettledWork,
  type Settlement,
  type TurnClaim,
} from './queue.ts'
export { REGIONS, type Region } from './regions.ts'
export {
  attemptsMaxOf,
  HEARTBEAT_INTERVAL_MS,
  LEASE_EXPIRED,
  QUEUE_POLICY,
  type QueuePolicy,
  REAP_INTERVAL_MS,
} from './retry-policy.ts'
export { type DueResult, type DueWorkDeps, parallelLoops, runDue } from './run-due.ts'
export { type DueSettlement, type DueTable, dueInRegionsSql, type Lease, settleDue, updateHeld } from './sql/due.ts'
export {
  type Backlog,
  countBacklog,
  countWaiting,
  insertWaiting,
  insertWaitingSql,
  type LeaseKey,
  type QueuedItem,
  type QueueTable,
  type SettledItem,
} from './sql/queue.ts'
export type { Availability, KeyLimit } from './sql/round-robin-claim.ts'
export { createTaskRunner, type TaskKind, type TaskStep, taskCleaner } from './tasks/run-tasks.ts'
export { cancelTasksOfEnvironments, deleteTasksOfEnvironment, TASK_STATES, type TaskRecord } from './tasks/sql.ts'
export { cancelTask, getTask, listTasks, startServiceTask, startTask } from './tasks/task.ts'
