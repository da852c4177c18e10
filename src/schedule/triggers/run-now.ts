import { assertRunnable, enqueueNewRun, loadRunReferences, type RunView } from '../../queue/index.ts'
import { lockTrigger, type Tx, updateLastRun } from '../../storage/index.ts'
import type { TriggerDeps } from './deps.ts'
import { missingTrigger } from './read-triggers.ts'

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
