/**
 * The worker process, in one list of loops: ticks, runs to webhooks, maintenance of the tables.
 *
 * Never here: what a loop does (schedules, runs, syncs). Here is which loops run, and that a failed round is repeated.
 */

export type { DayRetention } from './maintenance.ts'
export { createWorker } from './worker.ts'
