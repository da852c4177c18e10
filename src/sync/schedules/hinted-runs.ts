import { catchFailure, Failure, isTransient } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { findTriggersOfResource, type HintedResource, hasUnstartedRun } from './sql/hinted-trigger.ts'
import { runTriggerNow } from './trigger-actions.ts'
import type { TriggerDeps } from './trigger-schedule.ts'

/** What a hint did with one trigger: started a run, found one that waits and will read the change, or could not start one. */
export type HintedRun = { readonly triggerId: string } & (
  | { readonly kind: 'started'; readonly runId: string }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'failed'; readonly error: Failure }
)

/**
 * Starts one run of every trigger of the account that reads the resource and is not paused, unless a run of it waits that has
 * read nothing yet: that one reads the change. Needs a transaction.
 *
 * @throws Failure GROUP_FULL and other errors that pass; nothing is to be kept of the transaction then
 */
export async function startHintedRuns(deps: TriggerDeps, tx: Tx, hint: HintedResource): Promise<readonly HintedRun[]> {
  const runs: HintedRun[] = []
  for (const triggerId of await findTriggersOfResource(tx, hint))
    runs.push(await startHintedRun(deps, tx, hint, triggerId))
  return runs
}

async function startHintedRun(
  deps: TriggerDeps,
  tx: Tx,
  { environmentId, integratedAccountId }: HintedResource,
  triggerId: string,
): Promise<HintedRun> {
  if (await hasUnstartedRun(tx, integratedAccountId, triggerId)) return { triggerId, kind: 'waiting' }
  const run = await catchFailure(() => runTriggerNow(deps, tx, environmentId, triggerId))
  if (!(run instanceof Failure)) return { triggerId, kind: 'started', runId: run.id }
  if (run.reason === 'GROUP_FULL' || isTransient(run)) throw run
  return { triggerId, kind: 'failed', error: run }
}
