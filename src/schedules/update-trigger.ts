import { etagMismatch, invalidFields } from '../base/index.ts'
import type { Database, Tx } from '../database/index.ts'
import { type ErrorHandling, hasWebhook, type RunDestination, webhookNotFound } from '../runs/index.ts'
import { CATCH_UP } from './catch-up.ts'
import { checkCron, firstTick, mapReferenceErrors, type TriggerDeps } from './create-trigger.ts'
import { fireTicks } from './fire-ticks.ts'
import { QueueDepthCache } from './queue-depth-cache.ts'
import { getTrigger, missingTrigger } from './read-triggers.ts'
import { findDueTrigger } from './sql/due-trigger.ts'
import {
  findTrigger,
  lockSchedule,
  lockTrigger,
  type TriggerRecord,
  updateSchedule,
  updateTriggerDestination,
  updateTriggerSettings,
} from './sql/trigger.ts'

/** What may change; an absent field keeps its value. */
export interface TriggerChange {
  readonly cronExpression?: string | undefined
  /** Replaces the stored destination of whichever kind. */
  readonly destination?: RunDestination | undefined
  /** `null`: the job's again. */
  readonly errorHandling?: ErrorHandling | null | undefined
  /** The version the caller saw. Absent: whatever is stored. */
  readonly version?: number | undefined
}

/** What an update needs: it opens a transaction only when the schedule moves. */
export interface UpdateDeps extends TriggerDeps {
  readonly database: Database
}

/**
 * Changes destination, schedule and error handling and returns the trigger.
 *
 * A destination alone, also with the expression that is stored already, is one statement. A new expression counts from now;
 * a tick that is due when the change arrives is fired under the old one, with the old destination, in the same transaction.
 * Runs that exist keep what they were created with.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CRON_EXPRESSION_INVALID, WEBHOOK_NOT_FOUND; nothing changes then
 */
export async function updateTrigger(
  deps: UpdateDeps,
  environmentId: string,
  id: string,
  change: TriggerChange,
): Promise<TriggerRecord> {
  const { database } = deps
  const { cronExpression, destination, errorHandling, version } = change
  if (destination !== undefined && errorHandling === undefined) {
    const expected = { version, cronExpression }
    const updated = await mapReferenceErrors({ destination }, () =>
      updateTriggerDestination(database.pool, environmentId, id, destination, expected),
    )
    if (updated !== undefined) return updated
  }
  const stored = await getChangeable(database.pool, environmentId, id, change)
  if (changesNothing(stored, change)) return stored
  const violations = cronExpression === undefined ? [] : checkCron(deps, cronExpression)
  if (violations.length > 0) throw invalidFields(violations, 'CRON_EXPRESSION_INVALID')
  return await database.transaction((tx) => changeSettings(deps, tx, environmentId, id, change))
}

/** Whether nothing of the trigger would change. A destination that is given always counts as another. */
function changesNothing(stored: TriggerRecord, { cronExpression, destination, errorHandling }: TriggerChange): boolean {
  if (destination !== undefined || (errorHandling !== undefined && errorHandling !== stored.errorHandling)) return false
  return cronExpression === undefined || cronExpression === stored.cronExpression
}

async function changeSettings(
  deps: UpdateDeps,
  tx: Tx,
  environmentId: string,
  id: string,
  change: TriggerChange,
): Promise<TriggerRecord> {
  const stored = (await lockTrigger(tx, environmentId, id)) ?? missingTrigger(id)
  assertVersion(stored, change.version)
  const { cronExpression = stored.cronExpression, destination = stored.destination } = change
  const { errorHandling = stored.errorHandling } = change
  // Another call may have stored the same expression since: then its schedule stands.
  if (cronExpression !== stored.cronExpression) {
    const { isPaused, now } = await lockAndFireDue(deps, tx, id)
    const nextFireAt = isPaused ? null : firstTick(cronExpression, now)
    await updateSchedule(tx, id, { cronExpression, isPaused, nextFireAt })
  }
  const settings = { cronExpression, destination, errorHandling }
  await mapReferenceErrors({ destination }, () => updateTriggerSettings(tx, environmentId, id, settings))
  return await getTrigger(tx, environmentId, id)
}

/**
 * Takes the schedule's row and fires what is due on it, so that no tick is lost when the schedule is then changed.
 *
 * Call with the trigger locked.
 */
export async function lockAndFireDue(
  deps: TriggerDeps,
  tx: Tx,
  triggerId: string,
): Promise<{ readonly isPaused: boolean; readonly now: Date }> {
  const schedule = await lockSchedule(tx, triggerId)
  if (schedule === undefined) throw new Error('a trigger without a schedule')
  const { queue, catchUp = CATCH_UP } = deps
  if (schedule.nextFireAt !== null && schedule.nextFireAt <= schedule.now) {
    const due = await findDueTrigger(tx, triggerId, schedule.now)
    await fireTicks({ queue, catchUp, room: new QueueDepthCache(queue) }, tx, due, schedule.now, false)
  }
  return schedule
}

/** Finds out why a change may not be made, if so. */
async function getChangeable(tx: Tx, environmentId: string, id: string, change: TriggerChange) {
  const stored = (await findTrigger(tx, environmentId, id)) ?? missingTrigger(id)
  assertVersion(stored, change.version)
  const { destination } = change
  if (destination?.kind === 'webhook' && !(await hasWebhook(tx, environmentId, destination.webhookId)))
    throw webhookNotFound(destination.webhookId)
  return stored
}

/** @throws Failure ETAG_MISMATCH */
export function assertVersion(stored: TriggerRecord, version: number | undefined): void {
  if (version !== undefined && version !== stored.version) throw etagMismatch('sync_job_cron_trigger', stored.id)
}
