import { type FailureReason, invalidFields, type JsonObject, newId, type Violation } from '../../base/index.ts'
import { destinationRequired, type ErrorHandling, loadRunReferences, type RunDestination } from '../../queue/index.ts'
import { insertTrigger, type TriggerRecord, type Tx } from '../../storage/index.ts'
import { checkCronExpression } from '../cron/check-cron-expression.ts'
import { cronExpression } from '../cron/cron-expression.ts'
import { shardOf } from '../tick/due-scan.ts'
import type { TriggerDeps } from './deps.ts'
import { mapReferenceErrors } from './references.ts'

/** Asks for a trigger. */
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
  tx: Tx,
  environmentId: string,
  input: TriggerInput,
): Promise<TriggerRecord> {
  const { syncJobId, integratedAccountId, destination, resources = [], errorHandling = null } = input
  const violations = [
    ...checkCron(deps, input.cronExpression),
    ...(resources.length === 0 ? [] : await deps.checkResources(tx, environmentId, syncJobId, resources)),
  ]
  if (violations.length > 0) throw invalidFields(violations, reasonOf(violations))
  if (destination === undefined) throw destinationRequired()
  const subject = await loadRunReferences(tx, environmentId, { syncJobId, integratedAccountId, destination })
  const args = await deps.resolveArgs(subject.argsRules, input.args ?? {})
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
    region: subject.region,
    nextFireAt: firstTick(input.cronExpression, deps.now?.() ?? subject.now),
  }
  return await mapReferenceErrors(trigger, () => insertTrigger(tx, trigger))
}

/** The violations of an expression that is about to be stored. */
export function checkCron({ minTickGapSeconds, now }: TriggerDeps, expression: string): readonly Violation[] {
  const from = now?.() ?? new Date()
  return checkCronExpression(expression, { minTickGapSeconds, from, field: 'cron_expression' })
}

/** The first tick of a checked expression after a moment. */
export function firstTick(expression: string, after: Date): Date {
  const tick = cronExpression(expression).next(after)
  if (tick === undefined) throw new Error('a checked expression has no tick')
  return tick
}

/** The particular reason when all violations share it. */
function reasonOf(violations: readonly Violation[]): FailureReason {
  if (violations.every(({ rule }) => rule.startsWith('cron.'))) return 'CRON_EXPRESSION_INVALID'
  if (violations.every(({ field }) => field.startsWith('resources'))) return 'RESOURCES_INVALID'
  return 'INVALID_FIELD'
}
