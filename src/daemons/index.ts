/**
 * Daemons: processes of the customer that execute runs of a group and keep the records themselves. Who they are, what they
 * claim, and what they report.
 *
 * A run is queued, leased and settled by the queue like any other; here is what makes a stranger its holder: everything is
 * confined to an environment, and nothing handed out holds a credential. Never here: how a sync is executed.
 */

export type { Assignment } from './assignment.ts'
export { ClaimLongPolls } from './claim-long-polls.ts'
export { type ClaimDeps, claimRuns } from './claim-runs.ts'
export {
  type Daemon,
  type DaemonGroup,
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
export { completeRun, type FailureDeps, failRun, type ReportedProgress, releaseRun, reportProgress } from './report.ts'
