/**
 * Shares of tenants in what a process does at once: slots, queues and semaphores that serve owners in turns, worker threads, and turns of
 * the event loop.
 *
 * Never here: who the owners are.
 */

export { TimeSlice, yieldToEventLoop } from './event-loop-turns.ts'
export { FairQueue } from './fair-queue.ts'
export { FairSemaphore } from './fair-semaphore.ts'
export { FairSlots } from './fair-slots.ts'
export { type TaskOwner, WorkerThreads } from './worker-threads.ts'
