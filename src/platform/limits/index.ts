/**
 * Rate limits of outbound calls, shared through the database by every API server and worker: requests per sliding window, and
 * calls of an account in flight. The proxy engine acquires a permit here before it sends.
 *
 * Lives here: counting, short waits, blocks that the third party asked for. Never here: the limits themselves, which the
 * definition has, and what a caller does without a permit.
 */

export { createCallLimiter } from './call-limiter.ts'
export { deleteExpiredSlots, deleteIdleWindows } from './sql.ts'
export { takeRequest } from './take-request.ts'
