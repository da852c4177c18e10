import type { Tx } from '../../foundation/database/index.ts'
import { appendEvents, type NewEvent } from '../../platform/outbox/index.ts'
import { DESTINATION_EVENTS, failedTriggerPayload, runPayload } from './run-payload.ts'
import { type AskedRun, findAskedRuns, type RunChange } from './sql/run-events.ts'

/**
 * Records the events of changed runs, in the transaction of the change, as far as an active webhook of their environment asks
 * for them: the run is a record of its own, and a million ticks a minute leave no time for events that nothing receives. The
 * destination of a run gets no delivery of what the run itself sends it.
 */
export async function recordRunEvents(tx: Tx, changes: readonly RunChange[]): Promise<void> {
  if (changes.length === 0) return
  const asked = await findAskedRuns(tx, changes)
  await appendEvents(tx, asked.map(newEvent))
}

function newEvent(run: AskedRun): NewEvent {
  const { type, environmentId, integratedAccountId, webhookId } = run
  const exceptWebhookId = DESTINATION_EVENTS.includes(type) ? webhookId : null
  const event = { environmentId, type, integratedAccountId, exceptWebhookId }
  if (type === 'sync_job_cron_trigger:failed')
    return { ...event, subjectId: run.triggerId, payload: skippedTickPayload(run) }
  return { ...event, subjectId: run.id, payload: changedRunPayload(run) }
}

function changedRunPayload(run: AskedRun) {
  const { type, status, error, skipReason, resourceStats } = run
  return {
    ...runPayload(run, status, resourceStats, error),
    ...(type === 'sync_job_run:completed' ? { complete: status === 'completed' } : {}),
    ...(skipReason === null ? {} : { skip_reason: skipReason }),
  }
}

function skippedTickPayload(run: AskedRun) {
  const reason = run.skipReason ?? ''
  const message = `the tick was skipped: ${reason.replaceAll('_', ' ')}`
  return failedTriggerPayload({ ...run, id: run.triggerId, syncJobRunId: run.id, reason, message })
}
