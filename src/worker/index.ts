/**
 * The process without callers: loops that fire ticks, execute runs to webhooks and keep the tables in order.
 *
 * What the loops do is decided elsewhere (schedule, queue, sync); here is when, how many at once, and what a failing round
 * means: never the end.
 */

export { createWorker } from './worker.ts'
