/**
 * Clients of a server over its public contract, for the command line and for daemons: the transport, the classification of
 * errors, and the few operations that the command line calls.
 *
 * Never here: the database, a terminal, or what only daemons call.
 */

export { type AuditEntryFilter, readAuditEntries } from './audit.ts'
export { createCallsClient, type LoggedRequest, type RequestFilter } from './calls.ts'
export { callErrorFrom, hasReason, isAccessDenied, ServerUnavailable, UnexpectedAnswer } from './errors.ts'
export { followRun, type RunEvent } from './follow-run.ts'
export {
  createRunsClient,
  type FollowedError,
  type FollowedRun,
  isFinished,
  type ResourceProgress,
  type RunsClient,
} from './runs.ts'
export { connectTransport, type ServerAddress } from './transport.ts'
export { pushUnified, type UnifiedPush, type UnifiedPushResult } from './unified.ts'
