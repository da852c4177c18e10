import type { JsonObject as StructValue } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import type { UnifiedMapping } from '../../gen/patchbay/v1/unified_mapping_pb.ts'
import { UnifiedMappingService } from '../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { UnifiedModelService } from '../../gen/patchbay/v1/unified_model_service_pb.ts'
import { type JsonObject, newId, toDoubles } from '../base/index.ts'
import { callErrorFrom, hasReason } from './errors.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** Where the mappings of one file hold. */
export interface PushPlace {
  readonly scope: string
  /** Of the scope `account`. */
  readonly integratedAccountId: string | undefined
  readonly model: string
  readonly integrationName: string
}

/** A mapping as the server has it. */
export type RemoteMapping = Pick<UnifiedMapping, 'id' | 'resource' | 'method' | 'config' | 'etag' | 'warnings'>

/** What the server stores of a model. */
interface RemoteModel {
  readonly config: JsonObject
  readonly etag: string
}

/** Client for models and mappings. Every method throws a `Failure` with the server's reason, or `ServerUnavailable`. */
export interface UnifiedClient {
  /** What the team stored of a model; `undefined`: nothing. */
  findModel(name: string): Promise<RemoteModel | undefined>
  /** Stores a model. @param before what is stored and replaced */
  saveModel(name: string, config: JsonObject, before: RemoteModel | undefined): Promise<void>
  /** The mappings of a place, of all resources and methods. */
  listMappings(place: PushPlace): Promise<readonly RemoteMapping[]>
  createMapping(
    place: PushPlace,
    mapping: { readonly resource: string; readonly method: string; readonly config: JsonObject },
  ): Promise<RemoteMapping>
  /** Replaces the whole config. */
  replaceMapping(before: RemoteMapping, config: JsonObject): Promise<RemoteMapping>
  /** What the server finds in a mapping over the layers and methods that it has now. */
  checkMapping(
    place: PushPlace,
    mapping: { readonly resource: string; readonly method: string; readonly config: JsonObject },
  ): Promise<RemoteMapping['warnings']>
}

const CALL_TIMEOUT_MS = 30_000
const PAGE_SIZE = 1_000

/** Creates a client of the server at that address. */
export function createUnifiedClient(address: ServerAddress): UnifiedClient {
  const transport = connectTransport(address)
  const models = createClient(UnifiedModelService, transport)
  const mappings = createClient(UnifiedMappingService, transport)
  const options = { timeoutMs: CALL_TIMEOUT_MS }
  return {
    async findModel(name) {
      try {
        const { config = {}, etag } = await answerOf(models.getUnifiedModel({ name }, options))
        return etag === '' ? undefined : { config, etag }
      } catch (error) {
        if (hasReason(error, 'RESOURCE_NOT_FOUND')) return undefined
        throw error
      }
    },
    async saveModel(name, config, before) {
      if (before === undefined)
        await answerOf(models.createUnifiedModel({ name, config: structOf(config), requestId: newId() }, options))
      else
        await answerOf(
          models.updateUnifiedModel(
            { name, config: structOf(config), replaceConfig: true, etag: before.etag },
            options,
          ),
        )
    },
    async listMappings(place) {
      const found: RemoteMapping[] = []
      let pageToken = ''
      do {
        const request = { ...place, pageSize: PAGE_SIZE, pageToken }
        const page = await answerOf(mappings.listUnifiedMappings(request, options))
        found.push(...page.unifiedMappings)
        pageToken = page.nextPageToken
      } while (pageToken !== '')
      return found
    },
    createMapping: (place, mapping) =>
      answerOf(
        mappings.createUnifiedMapping(
          { ...place, ...mapping, config: structOf(mapping.config), requestId: newId() },
          options,
        ),
      ),
    replaceMapping: ({ id, etag }, config) =>
      answerOf(mappings.updateUnifiedMapping({ id, etag, config: structOf(config), replaceConfig: true }, options)),
    checkMapping: async (place, { method, config, ...rest }) => {
      const named = method === '*' ? {} : { method }
      const request = { ...place, ...rest, ...named, config: structOf(config) }
      return (await answerOf(mappings.checkUnifiedMapping(request, options))).findings
    },
  }
}

/** Numbers of a `google.protobuf.Struct` are doubles. */
function structOf(config: JsonObject): StructValue {
  return toDoubles(config) as StructValue
}

/** @throws Failure with the server's reason, ServerUnavailable, UnexpectedAnswer */
async function answerOf<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call
  } catch (error) {
    throw callErrorFrom(error)
  }
}
