import { type FailureReason, invalidFields, newId, notFound, type Violation } from '../../foundation/base/index.ts'
import { type Db, isForeignKeyViolation } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { ErrorHandling, RunDestination } from '../runs/run.ts'
import { destinationRequired, loadRunReferences, webhookNotFound } from '../runs/run-targets.ts'
import { shardOf } from './shard-cursors.ts'
import { insertTrigger, type TriggerRecord } from './sql/trigger.ts'
import { checkCron, firstTick, type TriggerDeps } from './trigger-schedule.ts'

/** A trigger to be created. */
export interface TriggerInput {
  readonly syncJobId: string
  readonly integratedAccountId: string
  readonly cronExpression: string
  readonly destination: RunDestination | undefined
  readonly args?: JsonObject | undefined
  /** Absent or empty: the job's. */
  readonly resources?: readonly JsonObject[] | undefined
  /** Absent or `null`: the job's. */
  readonly errorHandling?: ErrorHandling | null | undefined
}

/**
 * Schedules a job for an account; the first run is at the first tick after now. Needs a transaction.
 *
 * @throws Failure CRON_EXPRESSION_INVALID, RESOURCES_INVALID (both with every violation), DESTINATION_REQUIRED,
 * RESOURCE_NOT_FOUND, WEBHOOK_NOT_FOUND, INVALID_FIELD, ARGS_INVALID; nothing is stored then
 */
export async function createTrigger(
  deps: TriggerDeps,
  tx: Db,
  environmentId: string,
  input: TriggerInput,
): Promise<TriggerRecord> {
  const { syncJobId, integratedAccountId, destination, resources = [], errorHandling = null } = input
  const violations = [
    ...checkCron(deps, input.cronExpression),
    ...(resources.length === 0 ? [] : await deps.checkResources(tx, environmentId, syncJobId, resources)),
  ]
  if (violations.length > 0) throw invalidFields(violations, violationReason(violations))
  if (destination === undefined) throw destinationRequired()
  const references = await loadRunReferences(tx, environmentId, { syncJobId, integratedAccountId, destination })
  const { integrationName, jobResources } = references
  const account = { environmentId, integratedAccountId, integrationName }
  await deps.assertMapped(tx, account, resources.length === 0 ? jobResources : resources)
  const args = await deps.resolveArgs(references.argsRules, input.args ?? {})
  const id = newId()
  const trigger = {
    id,
    environmentId,
    syncJobId,
    integratedAccountId,
    destination,
    args,
    resources,
    errorHandling,
    cronExpression: input.cronExpression,
    shard: shardOf(id),
    region: references.region,
    nextFireAt: firstTick(input.cronExpression, references.now),
  }
  return await mapReferenceErrors(trigger, () => insertTrigger(tx, trigger))
}

/** The specific reason, when all violations share it. */
function violationReason(violations: readonly Violation[]): FailureReason {
  if (violations.every(({ rule }) => rule.startsWith('cron.'))) return 'CRON_EXPRESSION_INVALID'
  if (violations.every(({ field }) => field.startsWith('resources'))) return 'RESOURCES_INVALID'
  return 'INVALID_FIELD'
}

/** The rows that a trigger refers to. */
interface TriggerReferences {
  readonly syncJobId?: string
  readonly integratedAccountId?: string
  readonly destination: RunDestination
}

/** Runs a write of a trigger; a reference that was deleted since it was looked up gives its not-found error. */
export async function mapReferenceErrors<Result>(
  references: TriggerReferences,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    throw missingReferenceError(error, references) ?? error
  }
}

function missingReferenceError(
  error: unknown,
  { syncJobId = '', integratedAccountId = '', destination }: TriggerReferences,
) {
  if (isForeignKeyViolation(error, 'sync_job_cron_trigger_job')) return notFound('sync_job', syncJobId)
  if (isForeignKeyViolation(error, 'sync_job_cron_trigger_account'))
    return notFound('integrated_account', integratedAccountId)
  if (isForeignKeyViolation(error, 'sync_job_cron_trigger_webhook') && destination.kind === 'webhook')
    return webhookNotFound(destination.webhookId)
  return undefined
}
