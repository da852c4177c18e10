import type { MessageInitShape } from '@bufbuild/protobuf'
import type { SyncJobSchema } from '../../../gen/patchbay/v1/sync_job_pb.ts'
import type { CreateSyncJobRequest, UpdateSyncJobRequest } from '../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { type SyncJobRecord, toEtag } from '../../storage/index.ts'
import type { SyncJobInput, updateSyncJob } from '../../sync/index.ts'
import { versionFrom } from './etag.ts'
import { structFrom } from './struct.ts'
import { ERROR_HANDLING } from './sync-job-run.ts'
import { syncResourcesFromProto, syncResourcesToProto } from './sync-resource.ts'
import { timestampFrom } from './timestamp.ts'
import { parseEnum } from './word.ts'

/** A job; its resources each with a `query`, even an empty one. */
export function syncJobToProto(job: SyncJobRecord): MessageInitShape<typeof SyncJobSchema> {
  return {
    id: job.id,
    environmentId: job.environmentId,
    label: job.label,
    integrationName: job.integrationName,
    argsSchema: structFrom(job.argsSchema),
    argsValidation: job.argsValidation,
    resources: syncResourcesToProto(job.resources),
    errorHandling: job.errorHandling,
    createdAt: timestampFrom(job.createdAt),
    updatedAt: timestampFrom(job.updatedAt),
    etag: toEtag(job.version),
  }
}

/** The job to make, its resources in the spelling of the contract. */
export function syncJobInputFromProto(request: CreateSyncJobRequest): SyncJobInput {
  const { label, integrationName, argsSchema, argsValidation } = request
  const errorHandling = parseEnum(ERROR_HANDLING, request.errorHandling)
  const resources = syncResourcesFromProto(request.resources)
  return { label, integrationName, resources, argsSchema, argsValidation, errorHandling }
}

/** A list has no presence: an empty one asks for nothing, because a job without resources would sync nothing. */
export function syncJobChangeFromProto(request: UpdateSyncJobRequest): Parameters<typeof updateSyncJob>[2] {
  const { id, label, argsSchema, argsValidation } = request
  const errorHandling = parseEnum(ERROR_HANDLING, request.errorHandling)
  const resources = request.resources.length === 0 ? undefined : syncResourcesFromProto(request.resources)
  return { id, label, resources, argsSchema, argsValidation, errorHandling, version: versionFrom(request.etag) }
}
