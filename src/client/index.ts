/**
 * The service as somebody outside sees it: the way to a server, and the few operations that the command line calls, over
 * the public contract, so that they work against any server.
 *
 * Nothing here knows the database or writes to a terminal. What daemons call, and what refusals mean to them, is theirs.
 */

export { retryAfterSecondsOf, ServerUnavailable } from './errors.ts'
export { followRun, type RunEvent } from './follow-run.ts'
export { createRunsClient, type FollowedRun, isFinished, type ResourceProgress, type RunsClient } from './runs.ts'
export { connectTransport, type ServerAddress } from './transport.ts'
