/**
 * Daemons: processes of the customer that execute runs of a group and keep the records themselves. Who they are, what they
 * claim, and what they report.
 *
 * A run is queued, leased and settled by the queue like any other; here is what makes a stranger its holder: everything is
 * confined to an environment, and nothing handed out holds a credential. Never here: how a sync is executed.
 */

export type { Assignment } from './assignment.ts'
export { type ClaimDeps, claimRuns } from './claim-runs.ts'
export { ClaimLongPolls } from './claim-waits.ts'
export {
  type Daemon,
  HEARTBEAT_SECONDS,
  LEASE_SECONDS,
  listDaemons,
  registerDaemon,
} from './daemon.ts'
export { type DaemonGroup, listDaemonGroups } from './daemon-group.ts'
export { pruneDaemons } from './forget.ts'
export { type HeartbeatInput, heartbeat, type LeaseState } from './heartbeat.ts'
export {
  completeRun,
  type FailureDeps,
  failRun,
  type ReportedProgress,
  releaseRun,
  reportProgress,
} from './report.ts'
