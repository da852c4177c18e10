import type { Db, Tx } from '../../foundation/database/index.ts'
import type { RunView } from '../runs/read-runs.ts'
import { enqueueNewRun } from '../runs/run-actions.ts'
import { assertRunnable, loadRunReferences } from '../runs/run-targets.ts'
import { getTrigger } from './read-triggers.ts'
import { deleteTrigger as deleteTriggerRecord, type TriggerRecord, updateLastRun } from './sql/trigger.ts'
import { assertVersion, changeSchedule, getLockedTrigger, type TriggerDeps } from './trigger-schedule.ts'

/**
 * Pauses the schedule; ticks that are due still fire, and existing runs are not affected. Pausing a paused trigger changes
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
  const trigger = await getLockedTrigger(tx, environmentId, id)
  if (trigger.isPaused) return trigger
  await changeSchedule(deps, tx, trigger, { isPaused: true })
  return await getTrigger(tx, environmentId, id)
}

/**
 * Resumes the schedule from now; ticks of the pause are not caught up. Resuming a trigger that is not paused changes nothing,
 * unless an error has suspended it: then it fires again. Needs a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function resumeTrigger(
  deps: TriggerDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<TriggerRecord> {
  const trigger = await getLockedTrigger(tx, environmentId, id)
  if (!trigger.isPaused && trigger.error === null) return trigger
  await changeSchedule(deps, tx, trigger, { isPaused: false })
  return await getTrigger(tx, environmentId, id)
}

/**
 * Deletes a trigger with its schedule and missed ticks; its runs are not affected.
 *
 * @param version the version the caller saw; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH
 */
export async function deleteTrigger(
  tx: Db,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<void> {
  if (await deleteTriggerRecord(tx, environmentId, id, version)) return
  assertVersion(await getTrigger(tx, environmentId, id), version)
}

/**
 * Creates a run of the trigger now, beside its schedule and also while that is paused. Needs a transaction.
 *
 * It waits for a running run of the account like any other, but is not skipped for other waiting runs of the trigger.
 *
 * @param options `ignorePreviousRun`: reads everything once; the dates of the trigger move as with any run
 * @throws Failure RESOURCE_NOT_FOUND, ACCOUNT_NOT_ACTIVE, INTEGRATION_DISABLED, ARGS_INVALID, GROUP_FULL
 */
export async function runTriggerNow(
  deps: TriggerDeps,
  tx: Tx,
  environmentId: string,
  id: string,
  { ignorePreviousRun = false }: { readonly ignorePreviousRun?: boolean } = {},
): Promise<RunView> {
  // The lock keeps two calls in the same millisecond apart.
  const trigger = await getLockedTrigger(tx, environmentId, id)
  const { syncJobId, integratedAccountId, destination, resources, errorHandling } = trigger
  const references = await loadRunReferences(tx, environmentId, { syncJobId, integratedAccountId, destination })
  assertRunnable(references)
  const args = await deps.resolveArgs(references.argsRules, trigger.args)
  const run = await enqueueNewRun(deps, tx, {
    environmentId,
    syncJobId,
    integratedAccountId,
    destination,
    args,
    triggerId: id,
    region: references.region,
    ignorePreviousRun,
    errorHandling: errorHandling ?? references.jobErrorHandling,
    resources,
  })
  await updateLastRun(tx, id, run)
  return run
}
