import { fromJson, toJson, type JsonObject as WireObject } from '@bufbuild/protobuf'
import { type SyncResource, SyncResourceSchema } from '../../../gen/patchbay/v1/sync_job_pb.ts'
import type { Json, JsonObject } from '../../base/index.ts'

/**
 * Sync resources as the domain keeps them: plain JSON in the contract's spelling, absent fields left out.
 */
export function syncResourcesFromProto(resources: readonly SyncResource[]): readonly JsonObject[] {
  // A message without a spelling of its own is always an object.
  return resources.map((resource) => {
    const json = toJson(SyncResourceSchema, resource, { useProtoFieldName: true }) as JsonObject
    // Its numbers as they came: protobuf makes doubles of them.
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
