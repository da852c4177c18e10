import { fromJson, toJson, type JsonObject as WireObject } from '@bufbuild/protobuf'
import { SyncJobSchema, type SyncResource, SyncResourceSchema } from '../../../../gen/patchbay/v1/sync_job_pb.ts'
import type { CreateSyncJobRequest, UpdateSyncJobRequest } from '../../../../gen/patchbay/v1/sync_job_service_pb.ts'
import type { Violation } from '../../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import type { SyncJobInput, SyncJobRecord, updateSyncJob } from '../../../sync/jobs/index.ts'
import type { ErrorHandling } from '../../../sync/runs/index.ts'
import { findingToProto } from './integration.convert.ts'
import { shapeOf } from './shape.ts'
import { parseEnum, versionFrom } from './values.convert.ts'

/** A job; its resources each with a `query`, even an empty one. */
export const syncJobToProto = shapeOf(SyncJobSchema).from<
  SyncJobRecord & { readonly findings: readonly Violation[] | undefined }
>({
  resources: ({ resources }) => syncResourcesToProto(resources),
  warnings: ({ findings }) => findings?.map(findingToProto),
})

/** The job to create, its resources as JSON of the contract. */
export function syncJobInputFromProto(request: CreateSyncJobRequest): SyncJobInput {
  const { label, integrationName, argsSchema, argsValidation, giveUpAfterSeconds } = request
  const errorHandling = parseEnum(ERROR_HANDLING, request.errorHandling)
  const resources = syncResourcesFromProto(request.resources)
  return { label, integrationName, resources, argsSchema, argsValidation, errorHandling, giveUpAfterSeconds }
}

/** The changes of a job. A list has no presence: an empty one changes nothing, because a job without resources would sync nothing. */
export function syncJobChangeFromProto(request: UpdateSyncJobRequest): Parameters<typeof updateSyncJob>[3] {
  const { id, label, argsSchema, argsValidation, giveUpAfterSeconds, etag } = request
  const errorHandling = parseEnum(ERROR_HANDLING, request.errorHandling)
  const resources = request.resources.length === 0 ? undefined : syncResourcesFromProto(request.resources)
  const version = versionFrom(etag)
  return { id, label, resources, argsSchema, argsValidation, errorHandling, giveUpAfterSeconds, version }
}

/**
 * Sync resources as they are stored: JSON with the field names of the contract, without absent fields.
 */
export function syncResourcesFromProto(resources: readonly SyncResource[]): readonly JsonObject[] {
  // A message that is no well-known type is always an object in JSON.
  return resources.map((resource) => {
    const json = toJson(SyncResourceSchema, resource, { useProtoFieldName: true }) as JsonObject
    // The original keeps the digits of numbers: protobuf converts them to doubles.
    return resource.query === undefined ? json : { ...json, query: resource.query as JsonObject }
  })
}

/** Sync resources as messages. Each has a `query`, even an empty one. */
export function syncResourcesToProto(resources: readonly Json[]): SyncResource[] {
  return resources.map((json) => {
    const { query = {}, ...rest } = json as JsonObject
    // protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
    const resource = fromJson(SyncResourceSchema, rest as never, { ignoreUnknownFields: true })
    resource.query = query as WireObject
    return resource
  })
}

/** The values of `error_handling` in the contract. */
export const ERROR_HANDLING = ['fail_fast', 'ignore', 'batch'] as const satisfies readonly ErrorHandling[]
