/**
 * Schedules: cron expressions, triggers, and the ticks that turn triggers into runs.
 *
 * Never here: what a run does (syncs), which process executes it (worker, daemon-runner), how long it is leased (runs).
 */

export { CATCH_UP, type CatchUpPolicy } from './catch-up.ts'
export { createTrigger, type TriggerInput } from './create-trigger.ts'
export { startHintedRuns } from './hinted-runs.ts'
export { getTrigger, listTicks, listTriggers, previewTicks } from './read-triggers.ts'
export { SchedulerMonitor, STALLED_AFTER_SECONDS } from './scheduler-monitor.ts'
export { findTriggersOfResource } from './sql/hinted-trigger.ts'
export type { TriggerFilter, TriggerRecord } from './sql/trigger.ts'
export { Ticker, type TickerStats } from './ticker.ts'
export { deleteTrigger, pauseTrigger, resumeTrigger, runTriggerNow } from './trigger-actions.ts'
export { checkCron } from './trigger-schedule.ts'
export { type TriggerChange, type UpdateDeps, updateTrigger } from './update-trigger.ts'
