import type { JsonObject } from '../base/index.ts'
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

/** The payload of events of a run: `SyncJobRunEventPayload` of the contract, without what only some events say. */
export function runPayload(run: RunPayloadFields, status: string, stats: readonly ResourceStats[]): JsonObject {
  return {
    id: run.id,
    sync_job_id: run.syncJobId,
    trigger_id: run.triggerId,
    integrated_account_id: run.integratedAccountId,
    tenant_id: run.tenantId,
    status,
    args: run.args,
    error_handling: run.errorHandling,
    scheduled_for: run.scheduledFor.toISOString(),
    attempt: run.attempt,
    resource_stats: stats.map(statsPayload),
  }
}

/** Field names of the contract, in a fixed order. */
function statsPayload(stats: ResourceStats): JsonObject {
  const { resource, method, pages, fetched, delivered, failed, complete } = stats
  const { distinct, duplicates, stopReason, claimedTotal, isEstimate, errors, errorsOmitted, warnings } = stats
  return {
    resource,
    method,
    pages,
    fetched,
    delivered,
    failed,
    complete,
    ...(distinct === undefined ? {} : { distinct }),
    ...(duplicates === undefined ? {} : { duplicates }),
    ...(stopReason === undefined ? {} : { stop_reason: stopReason }),
    ...(claimedTotal === undefined ? {} : { claimed_total: claimedTotal }),
    ...(isEstimate === undefined ? {} : { is_estimate: isEstimate }),
    ...(errors === undefined ? {} : { errors }),
    ...(errorsOmitted === undefined ? {} : { errors_omitted: errorsOmitted }),
    ...(warnings === undefined ? {} : { warnings }),
  }
}
