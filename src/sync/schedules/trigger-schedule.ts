import { type Clock, etagMismatch, notFound, type Violation } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { RunChecks } from '../runs/run-actions.ts'
import type { RunQueue } from '../runs/run-queue.ts'
import { CATCH_UP, type CatchUpPolicy } from './catch-up.ts'
import { checkCronExpression } from './check-cron-expression.ts'
import { cronExpression } from './cron-expression.ts'
import { fireTicks } from './fire-ticks.ts'
import { QueueDepthCache } from './queue-depth-cache.ts'
import { findDueTrigger } from './sql/due-trigger.ts'
import { lockSchedule, lockTrigger, type TriggerRecord, updateSchedule } from './sql/trigger.ts'

/** The violations of an expression that is to be stored. */
export function checkCron({ minTickGapSeconds, clock }: TriggerDeps, expression: string): readonly Violation[] {
  return checkCronExpression(expression, { minTickGapSeconds, from: clock.now(), field: 'cron_expression' })
}

/** The first tick of a checked expression after a moment. */
export function firstTick(expression: string, after: Date): Date {
  const tick = cronExpression(expression).next(after)
  if (tick === undefined) throw new Error('a checked expression has no tick')
  return tick
}

/**
 * Locks a trigger until the transaction ends.
 *
 * @param version the version the caller saw; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH
 */
export async function getLockedTrigger(
  tx: Tx,
  environmentId: string,
  id: string,
  version?: number,
): Promise<TriggerRecord> {
  const trigger = await lockTrigger(tx, environmentId, id)
  if (trigger === undefined) throw triggerNotFound(id)
  assertVersion(trigger, version)
  return trigger
}

/**
 * Changes the schedule of a locked trigger, from now on: ticks that are due are fired under the old expression first, so that
 * none is lost. Clears the error of a suspended trigger.
 *
 * @param change what is absent stays as it is
 */
export async function changeSchedule(
  deps: TriggerDeps,
  tx: Tx,
  trigger: TriggerRecord,
  change: { readonly cronExpression?: string; readonly isPaused?: boolean },
): Promise<void> {
  const schedule = await lockSchedule(tx, trigger.id)
  if (schedule === undefined) throw new Error('a trigger without a schedule')
  const { now, nextFireAt } = schedule
  if (nextFireAt !== null && nextFireAt <= now) {
    const { queue, catchUp = CATCH_UP } = deps
    const due = await findDueTrigger(tx, trigger.id, now)
    await fireTicks({ queue, catchUp, depths: new QueueDepthCache(queue) }, tx, due, now, false)
  }
  const { cronExpression = trigger.cronExpression, isPaused = schedule.isPaused } = change
  const next = isPaused ? null : firstTick(cronExpression, now)
  await updateSchedule(tx, trigger.id, { cronExpression, isPaused, nextFireAt: next })
}

/** @throws Failure ETAG_MISMATCH when the caller saw another version; absent: any version is accepted */
export function assertVersion(trigger: TriggerRecord, version: number | undefined): void {
  if (version !== undefined && version !== trigger.version) throw etagMismatch('sync_job_cron_trigger', trigger.id)
}

/** RESOURCE_NOT_FOUND for a trigger. */
export function triggerNotFound(id: string) {
  return notFound('sync_job_cron_trigger', id)
}

/** What the functions of triggers need. */
export interface TriggerDeps extends RunChecks {
  readonly queue: Pick<RunQueue, 'enqueue' | 'enqueueTicks' | 'countWaiting'>
  readonly minTickGapSeconds: number
  readonly catchUp?: CatchUpPolicy | undefined
  readonly clock: Pick<Clock, 'now'>
  /** Violations of resources that are to replace those of the job, with fields below `resources`. */
  checkResources(
    tx: Db,
    environmentId: string,
    syncJobId: string,
    resources: readonly JsonObject[],
  ): Promise<readonly Violation[]>
}
