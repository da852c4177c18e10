import { fromJson, toJson } from '@bufbuild/protobuf'
import { type SyncResource, SyncResourceSchema } from '../../../gen/patchbay/v1/sync_job_pb.ts'
import type { Json, JsonObject } from '../../base/index.ts'

/**
 * Sync resources as the domain keeps them: plain JSON in the contract's spelling, absent fields left out.
 */
export function syncResourcesFromProto(resources: readonly SyncResource[]): readonly JsonObject[] {
  // A message without a spelling of its own is always an object.
  return resources.map((resource) => toJson(SyncResourceSchema, resource, { useProtoFieldName: true }) as JsonObject)
}

/** Sync resources as messages. Each has a `query`, even an empty one. */
export function syncResourcesToProto(resources: readonly Json[]): SyncResource[] {
  return resources.map((json) => {
    // protobuf's JSON type is ours without `readonly`, and it changes nothing it reads.
    const resource = fromJson(SyncResourceSchema, json as never, { ignoreUnknownFields: true })
    resource.query ??= {}
    return resource
  })
}
