import type { JsonObject } from '../base/index.ts'
import { payloadOf } from '../events/index.ts'
import type { ErrorHandling, ResourceStats } from './run.ts'

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

const wholePayload = payloadOf('SyncJobRunEventPayload', ['error', 'complete', 'skip_reason', 'truncated_fields'])

/** The payload of events of a run, without what only some events say. */
export function runPayload(run: RunPayloadFields, status: string, stats: readonly ResourceStats[]): JsonObject {
  return wholePayload({ ...run, status, resourceStats: stats })
}

/** The payload of `sync_job_cron_trigger:failed`. */
export const failedTriggerPayload = payloadOf('SyncJobCronTriggerFailedEventPayload', ['truncated_fields'])
