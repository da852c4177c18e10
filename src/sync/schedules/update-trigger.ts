import { invalidFields } from '../../foundation/base/index.ts'
import type { Database, Db, Tx } from '../../foundation/database/index.ts'
import { canonicalJson, type JsonObject } from '../../foundation/json/index.ts'
import type { ErrorHandling, RunDestination } from '../runs/run.ts'
import { loadRunReferences, webhookNotFound } from '../runs/run-targets.ts'
import { hasWebhook } from '../runs/sql/run-targets.ts'
import { mapReferenceErrors } from './create-trigger.ts'
import { getTrigger } from './read-triggers.ts'
import { type TriggerRecord, updateTriggerDestination, updateTriggerSettings } from './sql/trigger.ts'
import { assertVersion, changeSchedule, checkCron, getLockedTrigger, type TriggerDeps } from './trigger-schedule.ts'

/** Changes of a trigger; an absent field keeps its value. */
export interface TriggerChange {
  readonly cronExpression?: string | undefined
  /** Replaces the stored destination, also by one of the other kind. */
  readonly destination?: RunDestination | undefined
  /** `null`: the job's again. */
  readonly errorHandling?: ErrorHandling | null | undefined
  /** Replace the stored ones as a whole. */
  readonly args?: JsonObject | undefined
  /** `null`: the job's again. Those of the job, while they are inherited, change nothing. */
  readonly resources?: readonly JsonObject[] | null | undefined
  /** The version the caller saw. Absent: any. */
  readonly version?: number | undefined
}

/** What an update needs: it opens a transaction only when more than the destination changes. */
export interface UpdateDeps extends TriggerDeps {
  readonly database: Database
}

/**
 * Changes what is given and returns the trigger.
 *
 * A destination alone, also with the expression that is stored already, is one statement. A new expression counts from now;
 * a tick that is due when the change arrives is fired under the old one, with the old destination, in the same transaction.
 * Arguments and resources are validated as for a new trigger. Runs that exist keep what they were created with; the dates of
 * incremental syncs stay, each with what was read (see `resourceKeys`).
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CRON_EXPRESSION_INVALID, WEBHOOK_NOT_FOUND, RESOURCES_INVALID,
 * ARGS_INVALID; nothing changes then
 */
export async function updateTrigger(
  deps: UpdateDeps,
  environmentId: string,
  id: string,
  change: TriggerChange,
): Promise<TriggerRecord> {
  const { database } = deps
  const { cronExpression, destination, version, errorHandling, args, resources } = change
  const isDestinationAlone = errorHandling === undefined && args === undefined && resources === undefined
  if (destination !== undefined && isDestinationAlone) {
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
function changesNothing(stored: TriggerRecord, change: TriggerChange): boolean {
  const { cronExpression, destination, errorHandling, args } = change
  if (destination !== undefined || (errorHandling !== undefined && errorHandling !== stored.errorHandling)) return false
  if (args !== undefined && canonicalJson(args) !== canonicalJson(stored.args)) return false
  if (newResources(stored, change) !== undefined) return false
  return cronExpression === undefined || cronExpression === stored.cronExpression
}

/** The resources to store, `null` for those of the job; `undefined` when they stay as they are. */
function newResources(
  { resources: inForce, areResourcesInherited }: TriggerRecord,
  { resources }: TriggerChange,
): TriggerChange['resources'] {
  if (resources === null) return areResourcesInherited ? undefined : null
  return resources === undefined || areSame(resources, inForce) ? undefined : resources
}

/** Whether two lists of nodes say the same; answers show an absent query as an empty one. */
function areSame(one: readonly JsonObject[], other: readonly JsonObject[]): boolean {
  const withQuery = (nodes: readonly JsonObject[]) => canonicalJson(nodes.map((node) => ({ query: {}, ...node })))
  return withQuery(one) === withQuery(other)
}

async function changeSettings(
  deps: TriggerDeps,
  tx: Tx,
  environmentId: string,
  id: string,
  change: TriggerChange,
): Promise<TriggerRecord> {
  const stored = await getLockedTrigger(tx, environmentId, id, change.version)
  const { cronExpression = stored.cronExpression, destination = stored.destination } = change
  const { errorHandling = stored.errorHandling } = change
  const resources = newResources(stored, change)
  const args = await checkedArgs(deps, tx, { ...stored, destination }, change.args, resources)
  // Another call may have stored the same expression since: then its schedule is kept.
  if (cronExpression !== stored.cronExpression) await changeSchedule(deps, tx, stored, { cronExpression })
  const settings = { cronExpression, destination, errorHandling, args, resources }
  await mapReferenceErrors({ destination }, () => updateTriggerSettings(tx, environmentId, id, settings))
  return await getTrigger(tx, environmentId, id)
}

/** The arguments to store, once they and the resources are found to be valid. @throws Failure RESOURCES_INVALID, ARGS_INVALID */
async function checkedArgs(
  deps: TriggerDeps,
  tx: Db,
  trigger: TriggerRecord,
  args: JsonObject | undefined,
  resources: TriggerChange['resources'],
): Promise<JsonObject> {
  if (args === undefined && resources === undefined) return trigger.args
  const { environmentId, syncJobId, integratedAccountId } = trigger
  const { integrationName, jobResources, argsRules } = await loadRunReferences(tx, environmentId, trigger)
  if (resources !== undefined) {
    const violations = resources === null ? [] : await deps.checkResources(tx, environmentId, syncJobId, resources)
    if (violations.length > 0) throw invalidFields(violations, 'RESOURCES_INVALID')
    await deps.assertMapped(tx, { environmentId, integratedAccountId, integrationName }, resources ?? jobResources)
  }
  return args === undefined ? trigger.args : await deps.resolveArgs(argsRules, args)
}

/** The trigger, if the change may be made. @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, WEBHOOK_NOT_FOUND */
async function getChangeable(tx: Db, environmentId: string, id: string, change: TriggerChange) {
  const stored = await getTrigger(tx, environmentId, id)
  assertVersion(stored, change.version)
  const { destination } = change
  if (destination?.kind === 'webhook' && !(await hasWebhook(tx, environmentId, destination.webhookId)))
    throw webhookNotFound(destination.webhookId)
  return stored
}
