/**
 * When things happen: cron expressions, triggers, and the ticks that turn triggers into runs.
 *
 * Never here: what a run does (sync), who executes it (worker, daemon), how long it may be held (queue).
 */
export { checkCronExpression } from './cron/check-cron-expression.ts'
export { nextTicks } from './cron/next-ticks.ts'
export { shardOf } from './tick/due-scan.ts'
export { CATCH_UP, type CatchUpPolicy } from './tick/due-ticks.ts'
export type { PassReport } from './tick/fire-due.ts'
export { SchedulerMonitor, STALLED_AFTER_SECONDS } from './tick/schedule-watch.ts'
export { Ticker, type TickerStats } from './tick/ticker.ts'
export { checkCron, createTrigger, type TriggerInput } from './triggers/create-trigger.ts'

export { getTrigger, listTicks, listTriggers, previewTicks } from './triggers/read-triggers.ts'
export { runTriggerNow } from './triggers/run-now.ts'
export { deleteTrigger, pauseTrigger, resumeTrigger } from './triggers/steer-trigger.ts'
export { type TriggerChange, type UpdateDeps, updateTrigger } from './triggers/update-trigger.ts'
