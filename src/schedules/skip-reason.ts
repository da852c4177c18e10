import type { DueTrigger } from './sql/due-trigger.ts'

/** Runs of one trigger that may wait or run at once: one runs, one more may wait for it. */
const ACTIVE_RUNS_MAX = 2

/**
 * Why a due tick makes no run that is executed, as a stable name; `null` when it does.
 *
 * @param openRuns runs of the trigger that wait or run, those of earlier ticks of the same pass included
 * @param isGroupFull whether as many runs wait in the destination's group as may
 */
export function skipReason(
  trigger: Pick<DueTrigger, 'isIntegrationEnabled' | 'accountStatus'>,
  openRuns: number,
  isGroupFull: boolean,
): string | null {
  if (!trigger.isIntegrationEnabled) return 'integration_disabled'
  if (trigger.accountStatus !== 'active') return `account_${trigger.accountStatus}`
  if (openRuns >= ACTIVE_RUNS_MAX) return 'overlap'
  if (isGroupFull) return 'group_full'
  return null
}
