/**
 * Due work: rows that come due, each of which one worker at a time works on under a lease. Claim, fence, attempts, regions and
 * settlement are the same for all of it; a kind of work is a `DueTable` and a function from a lease to its result.
 *
 * Kinds: activations, token refreshes, removals (accounts), subscriptions (webhook-subscriptions). Other work that waits, and why
 * it is no `DueTable`:
 * - runs, deliveries, inbound events wait in queues (`runs/queue.ts`): claims are fair between concurrency keys. Their workers
 *   are `LeasedWork`;
 * - tasks, ticks, sync hints, warnings, silence are done in the transaction that claims them: the lock of the row is the lease;
 * - context values on their way to the object store need no fence: storing one twice is harmless;
 * - ends of client secrets do not come due: they follow from definitions, which a loop evaluates in turns.
 *
 * Never here: what the work is, and its other columns.
 */

export { LeasedWork, type LeasedWorkDeps } from './leased-work.ts'
export { type DueResult, type DueWorkDeps, parallelLoops, runDue } from './run-due.ts'
export { type DueSettlement, type DueTable, dueInRegionsSql, type Lease, settleDue, updateHeld } from './sql.ts'
