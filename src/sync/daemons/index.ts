/**
 * The service's side of daemons: registration, claims by long poll, heartbeats, reports.
 *
 * Runs are queued, leased and settled by `sync/runs/` like any other; here a process of the customer holds them, so everything is
 * confined to an environment and no assignment contains a credential. Never here: how a sync is executed.
 */

export type { Assignment } from './assignment.ts'
export { ClaimLongPolls } from './claim-long-polls.ts'
export { claimRuns } from './claim-runs.ts'
export {
  type Daemon,
  type DaemonGroup,
  type DaemonsDeps,
  HEARTBEAT_SECONDS,
  type HeartbeatInput,
  heartbeat,
  LEASE_SECONDS,
  type LeaseState,
  listDaemonGroups,
  listDaemons,
  pruneDaemons,
  registerDaemon,
} from './daemon.ts'
export { completeRun, failRun, type ReportedProgress, releaseRun, reportProgress } from './report.ts'
