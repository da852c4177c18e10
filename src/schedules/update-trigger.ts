import { invalidFields } from '../base/index.ts'
import type { Database, Tx } from '../database/index.ts'
import { type ErrorHandling, hasWebhook, type RunDestination, webhookNotFound } from '../runs/index.ts'
import { mapReferenceErrors, type TriggerDeps } from './create-trigger.ts'
import { getTrigger } from './read-triggers.ts'
import { type TriggerRecord, updateTriggerDestination, updateTriggerSettings } from './sql/trigger.ts'
import { assertVersion, changeSchedule, checkCron, getLockedTrigger } from './trigger-schedule.ts'

/** Changes of a trigger; an absent field keeps its value. */
export interface TriggerChange {
  readonly cronExpression?: string | undefined
  /** Replaces the stored destination, also by one of the other kind. */
  readonly destination?: RunDestination | undefined
  /** `null`: the job's again. */
  readonly errorHandling?: ErrorHandling | null | undefined
  /** The version the caller saw. Absent: any. */
  readonly version?: number | undefined
}

/** What an update needs: it opens a transaction only when more than the destination changes. */
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
  const stored = await getLockedTrigger(tx, environmentId, id, change.version)
  const { cronExpression = stored.cronExpression, destination = stored.destination } = change
  const { errorHandling = stored.errorHandling } = change
  // Another call may have stored the same expression since: then its schedule is kept.
  if (cronExpression !== stored.cronExpression) await changeSchedule(deps, tx, stored, { cronExpression })
  const settings = { cronExpression, destination, errorHandling }
  await mapReferenceErrors({ destination }, () => updateTriggerSettings(tx, environmentId, id, settings))
  return await getTrigger(tx, environmentId, id)
}

/** The trigger, if the change may be made. @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, WEBHOOK_NOT_FOUND */
async function getChangeable(tx: Tx, environmentId: string, id: string, change: TriggerChange) {
  const stored = await getTrigger(tx, environmentId, id)
  assertVersion(stored, change.version)
  const { destination } = change
  if (destination?.kind === 'webhook' && !(await hasWebhook(tx, environmentId, destination.webhookId)))
    throw webhookNotFound(destination.webhookId)
  return stored
}
