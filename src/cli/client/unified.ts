import type { JsonObject as StructValue } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import {
  type PushUnifiedMappingsResponse,
  UnifiedMappingService,
} from '../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { type JsonObject, toDoubles } from '../../foundation/json/index.ts'
import { callErrorFrom } from './errors.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** Models and mappings to store together. */
export interface UnifiedPush {
  readonly scope: string
  /** Of the scope `account`. */
  readonly integratedAccountId: string | undefined
  readonly models: readonly { readonly name: string; readonly config: JsonObject }[]
  readonly mappings: readonly {
    readonly model: string
    readonly integrationName: string
    readonly resource: string
    /** `*`: what all methods share. */
    readonly method: string
    readonly config: JsonObject
  }[]
  /** Nothing is kept. */
  readonly validateOnly: boolean
}

/** What became of a push. */
export type UnifiedPushResult = Pick<PushUnifiedMappingsResponse, 'models' | 'mappings'>

const CALL_TIMEOUT_MS = 60_000

/** Stores models and mappings on a server. @throws Failure with the server's reason, ServerUnavailable, UnexpectedAnswer */
export async function pushUnified(address: ServerAddress, push: UnifiedPush): Promise<UnifiedPushResult> {
  const client = createClient(UnifiedMappingService, connectTransport(address))
  const request = {
    ...push,
    models: push.models.map(({ name, config }) => ({ name, config: structOf(config) })),
    mappings: push.mappings.map((mapping) => ({ ...mapping, config: structOf(mapping.config) })),
  }
  try {
    return await client.pushUnifiedMappings(request, { timeoutMs: CALL_TIMEOUT_MS })
  } catch (error) {
    throw callErrorFrom(error)
  }
}

/** Numbers of a `google.protobuf.Struct` are doubles. */
function structOf(config: JsonObject): StructValue {
  return toDoubles(config) as StructValue
}
