import { newId } from '../../foundation/base/index.ts'
import { queueGroupOf } from '../runs/run.ts'
import type { NewTick } from '../runs/sql/tick.ts'
import type { QueueDepthCache } from './queue-depth-cache.ts'
import type { DueTrigger } from './sql/due-trigger.ts'

/** Active runs of one trigger: one runs, one more may wait for it. */
const ACTIVE_RUNS_MAX = 2

/** Decides for each due tick of a trigger, oldest first, whether it runs or is skipped. The queue's depth must be loaded. */
export function decideTicks(depths: QueueDepthCache, trigger: DueTrigger, ticks: readonly Date[]): readonly NewTick[] {
  const { environmentId, group } = triggerQueueGroup(trigger)
  const { triggerId } = trigger
  let { activeRuns } = trigger
  return ticks.map((scheduledFor) => {
    const reason = skipReason(trigger, activeRuns, depths.isFull(environmentId, group))
    if (reason === null) {
      activeRuns++
      depths.add(environmentId, group)
    }
    return { triggerId, environmentId, runId: newId(), scheduledFor, skipReason: reason }
  })
}

/**
 * Why a due tick is skipped, as a stable name; `null` when it runs.
 *
 * @param activeRuns runs of the trigger that wait or run, those of earlier ticks of the same pass included
 * @param isQueueFull whether the destination's queue has as many waiting runs as it may have
 */
function skipReason(
  { isIntegrationEnabled, accountStatus }: DueTrigger,
  activeRuns: number,
  isQueueFull: boolean,
): string | null {
  if (!isIntegrationEnabled) return 'integration_disabled'
  if (accountStatus !== 'active') return `account_${accountStatus}`
  if (activeRuns >= ACTIVE_RUNS_MAX) return 'overlap'
  if (isQueueFull) return 'group_full'
  return null
}

/** The queue group in which runs of a trigger wait. */
export function triggerQueueGroup({ environmentId, destination }: DueTrigger) {
  return { environmentId, group: queueGroupOf(environmentId, destination) }
}
