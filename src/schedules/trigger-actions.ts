import type { Tx } from '../database/index.ts'
import { assertRunnable, enqueueNewRun, loadRunReferences, type RunView } from '../runs/index.ts'
import { firstTick, type TriggerDeps } from './create-trigger.ts'
import { getTrigger, missingTrigger } from './read-triggers.ts'
import {
  deleteTrigger as deleteTriggerRecord,
  findTrigger,
  lockTrigger,
  type TriggerRecord,
  updateLastRun,
  updateSchedule,
} from './sql/trigger.ts'
import { assertVersion, lockAndFireDue } from './update-trigger.ts'

/**
 * Makes the schedule stand still; what is due already still fires, runs that exist go on. Pausing a paused trigger changes
 * nothing. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function pauseTrigger(
  deps: TriggerDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<TriggerRecord> {
  const trigger = (await lockTrigger(tx, environmentId, id)) ?? missingTrigger(id)
  if (trigger.isPaused) return trigger
  await lockAndFireDue(deps, tx, id)
  await updateSchedule(tx, id, { cronExpression: trigger.cronExpression, isPaused: true, nextFireAt: null })
  return await getTrigger(tx, environmentId, id)
}

/**
 * Lets the schedule go on from now; ticks of the pause are not owed. Resuming a trigger that is not paused changes nothing,
 * but a parked one is given another chance. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function resumeTrigger(
  deps: TriggerDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<TriggerRecord> {
  const trigger = (await lockTrigger(tx, environmentId, id)) ?? missingTrigger(id)
  if (!trigger.isPaused && trigger.error === null) return trigger
  const { cronExpression } = trigger
  const { now } = await lockAndFireDue(deps, tx, id)
  await updateSchedule(tx, id, { cronExpression, isPaused: false, nextFireAt: firstTick(cronExpression, now) })
  return await getTrigger(tx, environmentId, id)
}

/**
 * Deletes a trigger with its schedule and missed stretches; its runs stay and go on.
 *
 * @param version the version the caller saw; absent: whatever is stored
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH
 */
export async function deleteTrigger(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<void> {
  if (await deleteTriggerRecord(tx, environmentId, id, version)) return
  const stored = (await findTrigger(tx, environmentId, id)) ?? missingTrigger(id)
  assertVersion(stored, version)
}

/**
 * Creates a run of the trigger now, beside its schedule and also while that is paused. Needs a transaction.
 *
 * It waits for a running run of the account like any other, but other waiting runs of the trigger do not keep it out.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ACCOUNT_NOT_ACTIVE, INTEGRATION_DISABLED, ARGS_INVALID, GROUP_FULL
 */
export async function runTriggerNow(deps: TriggerDeps, tx: Tx, environmentId: string, id: string): Promise<RunView> {
  // The lock keeps two calls in the same millisecond apart.
  const trigger = (await lockTrigger(tx, environmentId, id)) ?? missingTrigger(id)
  const { syncJobId, integratedAccountId, destination, resources, errorHandling } = trigger
  const subject = await loadRunReferences(tx, environmentId, { syncJobId, integratedAccountId, destination })
  assertRunnable(subject)
  const args = await deps.resolveArgs(subject.argsRules, trigger.args)
  const run = await enqueueNewRun(deps, tx, {
    environmentId,
    syncJobId,
    integratedAccountId,
    destination,
    args,
    triggerId: id,
    region: subject.region,
    ignorePreviousRun: false,
    errorHandling: errorHandling ?? subject.jobErrorHandling,
    resources: resources.length > 0 ? resources : subject.jobResources,
  })
  await updateLastRun(tx, id, run)
  return run
}
