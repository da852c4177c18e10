import {
  type ResourceStats as ProtoResourceStats,
  type SyncJobRunError as ProtoRunError,
  type SyncJobRunParent,
  SyncJobRunSchema,
} from '../../../../gen/patchbay/v1/sync_job_run_pb.ts'
import type {
  CreateSyncJobRunRequest,
  ListSyncJobRunsRequest,
} from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { assertNever } from '../../../foundation/base/index.ts'
import type {
  ParentRef,
  ResourceStats,
  RunDestination,
  RunError,
  RunFilter,
  RunInput,
  RunStatus,
  RunView,
} from '../../../sync/runs/index.ts'
import { shapeOf } from './shape.ts'
import { ERROR_HANDLING, syncResourcesToProto } from './sync-job.convert.ts'
import { parseEnum } from './values.convert.ts'

const STATUSES = [
  'created',
  'running',
  'rate_limited',
  'completed',
  'partially_completed',
  'failed',
  'stopped',
  'skipped',
] as const satisfies readonly RunStatus[]

/** A run with its progress, and the reason for which it waits. */
export const syncJobRunToProto = shapeOf(SyncJobRunSchema).from<RunView>({
  resources: ({ resources }) => syncResourcesToProto(resources),
  destination: ({ destination }) => destinationToProto(destination),
})

/** The run to create. The runs module rejects one without a destination. */
export function runInputFromProto(request: CreateSyncJobRunRequest): RunInput {
  const { syncJobId, integratedAccountId, args, ignorePreviousRun } = request
  const errorHandling = parseEnum(ERROR_HANDLING, request.errorHandling)
  const destination = destinationFromProto(request.destination)
  return { syncJobId, integratedAccountId, args, destination, errorHandling, ignorePreviousRun }
}

/** The filter of a list of runs; absent fields do not restrict. */
export function runFilterFromProto(request: ListSyncJobRunsRequest): RunFilter {
  const { syncJobId, integratedAccountId, triggerId } = request
  return { syncJobId, integratedAccountId, triggerId, status: parseEnum(STATUSES, request.status) }
}

/** The statistics that a daemon reports. */
export function resourceStatsFromProto(stats: ProtoResourceStats): ResourceStats {
  const { resource, method, pages, fetched, delivered, failed, stopReason, complete } = stats
  const { claimedTotal, distinct, duplicates, isEstimate, errors, errorsOmitted, warnings } = stats
  return {
    resource,
    method,
    pages,
    fetched,
    delivered,
    failed,
    complete,
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(claimedTotal === undefined ? {} : { claimedTotal }),
    ...(distinct === undefined ? {} : { distinct }),
    ...(duplicates === undefined ? {} : { duplicates }),
    ...(isEstimate ? { isEstimate } : {}),
    ...(errors.length === 0 ? {} : { errors: errors.map(runErrorFromProto) }),
    ...(errorsOmitted === 0 ? {} : { errorsOmitted }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(({ reason, message }) => ({ reason, message })) }),
  }
}

/** The error that a daemon reports. */
export function runErrorFromProto({ reason, message, ...place }: ProtoRunError): RunError {
  const { resource, method, parent, element, request, logId } = place
  return {
    reason,
    message,
    ...(resource === undefined ? {} : { resource }),
    ...(method === undefined ? {} : { method }),
    ...(parent === undefined ? {} : { parent: parentFromProto(parent) }),
    ...(element === undefined ? {} : { element }),
    ...(request === undefined ? {} : { request }),
    ...(logId === undefined ? {} : { logId }),
  }
}

function parentFromProto({ resource, id, path }: SyncJobRunParent): ParentRef {
  return { resource, ...(id === undefined ? {} : { id }), path }
}

/** The `oneof destination` of a request: at most one of the two. */
export type DestinationChoice =
  | { readonly case: 'daemonGroupKey'; readonly value: string }
  | { readonly case: 'webhookId'; readonly value: string }
  | { readonly case: undefined; readonly value?: undefined }

/** The requested destination; undefined when the request names none. */
export function destinationFromProto(choice: DestinationChoice): RunDestination | undefined {
  switch (choice.case) {
    case 'daemonGroupKey':
      return { kind: 'daemon', groupKey: choice.value }
    case 'webhookId':
      return { kind: 'webhook', webhookId: choice.value }
    case undefined:
      return undefined
    default:
      return assertNever(choice)
  }
}

/** The stored destination as a `oneof`. */
export function destinationToProto(destination: RunDestination): DestinationChoice {
  switch (destination.kind) {
    case 'daemon':
      return { case: 'daemonGroupKey', value: destination.groupKey }
    case 'webhook':
      return { case: 'webhookId', value: destination.webhookId }
    default:
      return assertNever(destination)
  }
}
