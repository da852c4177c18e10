import type { Tx } from '../database/index.ts'
import { appendEvents } from '../events/index.ts'
import { failedTriggerPayload } from '../runs/index.ts'
import type { DueTrigger } from './sql/due-trigger.ts'
import { suspendSchedule } from './sql/trigger.ts'

/**
 * Suspends the schedule of a due trigger with the reason, and records `sync_job_cron_trigger:failed`.
 *
 * @returns whether it was suspended; not when it has changed since the tick was read
 */
export async function suspendTrigger(
  tx: Tx,
  { triggerId, nextFireAt }: Pick<DueTrigger, 'triggerId' | 'nextFireAt'>,
  error: string,
): Promise<boolean> {
  const suspended = await suspendSchedule(tx, triggerId, nextFireAt, error)
  if (suspended === undefined) return false
  const { environmentId, integratedAccountId } = suspended
  const payload = failedTriggerPayload({
    ...suspended,
    id: triggerId,
    reason: 'suspended',
    message: error,
    scheduledFor: nextFireAt,
    syncJobRunId: null,
  })
  const type = 'sync_job_cron_trigger:failed'
  await appendEvents(tx, [{ environmentId, type, subjectId: triggerId, integratedAccountId, payload }])
  return true
}
