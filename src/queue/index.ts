/**
 * Work that outlives a process: what waits, who holds a lease on it, and how it ends. One seam, `enqueue · claim ·
 * heartbeat · settle · reap`, carries sync runs and whatever else needs a queue.
 *
 * Nothing here executes anything: workers and daemons do, and hand back an outcome.
 */
export type {
  ClaimedRun,
  ErrorHandling,
  ResourceStats,
  Run,
  RunDestination,
  RunError,
  RunKind,
  RunStatus,
} from '../storage/index.ts'
export type { RunOutcome, RunProgress } from './runs/execution.ts'
