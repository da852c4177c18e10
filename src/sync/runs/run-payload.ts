import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { type EventType, payloadOf } from '../../platform/outbox/index.ts'
import type { ErrorHandling, ResourceStats, RunError, RunStatus } from './run.ts'

/** The fields of a run in its events. */
export interface RunPayloadFields {
  readonly id: string
  readonly syncJobId: string
  readonly triggerId: string | null
  readonly integratedAccountId: string
  /** `null` when the account is gone. */
  readonly tenantId: string | null
  readonly args: JsonObject
  readonly errorHandling: ErrorHandling
  readonly scheduledFor: Date
  readonly attempt: number
}

const wholePayload = payloadOf('SyncJobRunEventPayload', ['complete', 'skip_reason', 'truncated_fields'])

/**
 * The payload of events of a run, without what only some events say.
 *
 * @param error as stored; null leaves it out
 */
export function runPayload(
  run: RunPayloadFields,
  status: string,
  stats: readonly ResourceStats[],
  error: RunError | null,
): JsonObject {
  return wholePayload({ ...run, status, resourceStats: stats, error: error ?? undefined })
}

/** An error of a run under the names that the log has for fields. */
export function runErrorFields({ logId, ...error }: RunError): Readonly<Record<string, Json>> {
  return logId === undefined ? error : { ...error, log_id: logId }
}

/** The payload of `sync_job_cron_trigger:failed`. */
export const failedTriggerPayload = payloadOf('SyncJobCronTriggerFailedEventPayload', ['truncated_fields'])

/** An event of a change of a run, or of a tick that could not become one. */
export type RunEventType = Extract<EventType, `sync_job_run:${string}` | 'sync_job_cron_trigger:failed'>

/** What a run sends to its destination itself, in order with the records; the destination gets no delivery of it. */
export const DESTINATION_EVENTS: readonly RunEventType[] = [
  'sync_job_run:started',
  'sync_job_run:completed',
  'sync_job_run:failed',
]

/** The event of a change to a status, unless the change has one of its own. */
export const STATUS_EVENTS: Readonly<Record<RunStatus, RunEventType>> = {
  created: 'sync_job_run:updated',
  running: 'sync_job_run:updated',
  rate_limited: 'sync_job_run:rate_limited',
  completed: 'sync_job_run:completed',
  partially_completed: 'sync_job_run:completed',
  failed: 'sync_job_run:failed',
  stopped: 'sync_job_run:updated',
  skipped: 'sync_job_run:updated',
}
