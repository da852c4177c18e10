import {
  deleteTrigger as deleteTriggerRecord,
  findTrigger,
  lockTrigger,
  type TriggerRecord,
  type Tx,
  updateSchedule,
} from '../../storage/index.ts'
import { firstTick } from './create-trigger.ts'
import type { TriggerDeps } from './deps.ts'
import { getTrigger, missingTrigger } from './read-triggers.ts'
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
