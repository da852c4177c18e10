/**
 * The service as somebody outside sees it: the way to a server, and the few operations that the command line calls, over
 * the public contract, so that they work against any server.
 *
 * Nothing here knows the database or writes to a terminal. What daemons call, and what refusals mean to them, is theirs.
 */
export { createRunsClient, type RunsClient } from './connect-runs.ts'
export { followRun, type RunEvent } from './follow-run.ts'
export { type FollowedRun, isFinished, type ResourceProgress } from './followed-run.ts'
export { retryAfterSecondsOf, ServerUnavailable } from './server-away.ts'
export { connectTransport, type ServerAddress } from './transport.ts'
