/**
 * Limits in front of calls, shared through the database by every API server and worker: requests per window, and calls of
 * an account in flight. The engine asks here before it sends.
 *
 * Lives here: counting, waiting for a short while, learning from what the third party says. Never here: what a limit is
 * (the definition says), or what to do when there is no room (the caller does).
 */

export { createCallLimiter } from './call-limiter.ts'
export { deleteExpiredSlots, deleteIdleWindows } from './sql.ts'
