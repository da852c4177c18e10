/**
 * The service as somebody outside sees it: the few operations that the command line calls, over the public contract, so
 * that it works against any server.
 *
 * Nothing here knows the database or writes to a terminal. Daemons have a client of their own, with other needs.
 */
export { connectRuns, type RunsClient, type ServerAddress } from './connect-runs.ts'
export { type FollowDeps, followRun, type RunNews } from './follow-run.ts'
export { type FollowedRun, isOver, type ResourceProgress, type RunStatus } from './followed-run.ts'
export { ServerAway } from './refusal.ts'
