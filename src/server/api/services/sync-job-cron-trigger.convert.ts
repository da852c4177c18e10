import {
  SyncJobCronTriggerSchema,
  SyncJobCronTriggerTickSchema,
} from '../../../../gen/patchbay/v1/sync_job_cron_trigger_pb.ts'
import type {
  CreateSyncJobCronTriggerRequest,
  ListSyncJobCronTriggersRequest,
  UpdateSyncJobCronTriggerRequest,
} from '../../../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import type { ErrorHandling, TickLedgerEntry } from '../../../sync/runs/index.ts'
import type { TriggerChange, TriggerFilter, TriggerInput, TriggerRecord } from '../../../sync/schedules/index.ts'
import type { Finding } from '../operation.ts'
import { shapeOf } from './shape.ts'
import { ERROR_HANDLING, syncResourcesFromProto, syncResourcesToProto } from './sync-job.convert.ts'
import { destinationFromProto, destinationToProto } from './sync-job-run.convert.ts'
import { parseEnum, timestampFrom, versionFrom } from './values.convert.ts'

/** A trigger with its schedule. */
export const syncJobCronTriggerToProto = shapeOf(SyncJobCronTriggerSchema).from<TriggerRecord>({
  resources: ({ resources }) => syncResourcesToProto(resources),
  resourcesInherited: ({ areResourcesInherited }) => areResourcesInherited,
  destination: ({ destination }) => destinationToProto(destination),
  paused: ({ isPaused }) => isPaused,
  scheduleError: ({ error }) => error,
})

/** The trigger to create. The schedules module rejects one without a destination. */
export function triggerInputFromProto(request: CreateSyncJobCronTriggerRequest): TriggerInput {
  const { syncJobId, integratedAccountId, cronExpression, args } = request
  const destination = destinationFromProto(request.destination)
  const resources = syncResourcesFromProto(request.resources)
  const errorHandling = errorHandlingFrom(request.errorHandling)
  return { syncJobId, integratedAccountId, cronExpression, destination, args, resources, errorHandling }
}

/** The changes of a trigger; a destination replaces the stored one of either kind. */
export function triggerChangeFromProto(request: UpdateSyncJobCronTriggerRequest): TriggerChange {
  const { cronExpression, etag, args } = request
  const resources = syncResourcesFromProto(request.resources)
  const destination = destinationFromProto(request.destination)
  const errorHandling = errorHandlingFrom(request.errorHandling)
  return {
    cronExpression,
    destination,
    errorHandling,
    args,
    resources: request.resourcesInherited === true ? null : resources.length === 0 ? undefined : resources,
    version: versionFrom(etag),
  }
}

/** Check of an update: resources of its own, or those of the job. */
export function triggerChangeFindings({
  resources,
  resourcesInherited,
}: UpdateSyncJobCronTriggerRequest): readonly Finding[] {
  if (resources.length === 0 || resourcesInherited !== true) return []
  const description = 'cannot be true together with resources'
  return [{ field: 'resources_inherited', description, rule: 'duplicate_field' }]
}

/** An empty value means the setting of the job. */
function errorHandlingFrom(word: string | undefined): ErrorHandling | null | undefined {
  return word === '' ? null : parseEnum(ERROR_HANDLING, word)
}

/** The filter of a list of triggers; absent fields do not restrict. */
export function triggerFilterFromProto(request: ListSyncJobCronTriggersRequest): TriggerFilter {
  const { syncJobId, integratedAccountId } = request
  return { syncJobId, integratedAccountId }
}

/** One entry of the ledger; of a missed stretch `scheduled_for` is its last tick. */
export const tickToProto = shapeOf(SyncJobCronTriggerTickSchema).from<TickLedgerEntry>({
  reason: ({ skipReason }) => skipReason,
  missed: ({ scheduledFor, missedFrom, missedCount }) =>
    missedFrom === null || missedCount === null
      ? undefined
      : { from: timestampFrom(missedFrom), to: timestampFrom(scheduledFor), count: missedCount },
})
