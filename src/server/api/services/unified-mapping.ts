import type { HandlerContext } from '@connectrpc/connect'
import { UnifiedMappingService } from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { Failure, invalidFields } from '../../../foundation/base/index.ts'
import type { Db, Tx } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import { getIntegratedAccount } from '../../../platform/accounts/index.ts'
import {
  checkLayer,
  createMapping,
  deleteMapping,
  getMapping,
  type LayerToCheck,
  type MappingWriter,
  pushMappings,
  selectMappings,
  updateMapping,
} from '../../../platform/unified-config/index.ts'
import { callerOf, environmentCallerOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import {
  mappingChangeFromProto,
  mappingFilterFromProto,
  mappingFindingToProto,
  mappingPlaceFindings,
  mappingScopeOf,
  modelsToPush,
  type PlacedRequest,
  placedMappingsOf,
  pushFindings,
  pushResultToProto,
  unifiedMappingToProto,
} from './unified-mapping.convert.ts'
import { triedMappingToProto } from './unified-try.convert.ts'
import { type TryDeps, tryUnifiedMapping } from './unified-try.ts'
import { versionFrom } from './values.convert.ts'

/** What the service works with. */
type MappingServiceDeps = Pick<ServiceDeps, 'database' | 'secrets' | 'accounts' | 'unifiedMappings'> & TryDeps

/** Administers unified mappings, and checks them. */
export function unifiedMappingService(deps: MappingServiceDeps): ServiceDefinition {
  const { database, unifiedMappings } = deps
  return defineService(
    UnifiedMappingService,
    {
      createUnifiedMapping: async (request, context) => {
        const { createUnifiedMapping: method } = UnifiedMappingService.method
        const writer = writerOf(context)
        const owner = mappingScopeOf(request) === 'base' ? writer.teamId : environmentOf(writer)
        const answer = await runIdempotent(deps, owner, method, request, async (tx) => {
          const { mapping, warnings } = await createMapping(tx, writer, await layerOf(deps, tx, writer, request))
          return unifiedMappingToProto({ ...mapping, warnings })
        })
        unifiedMappings.invalidate()
        return answer
      },
      getUnifiedMapping: async ({ id }, context) =>
        unifiedMappingToProto(await getMapping(database.pool, writerOf(context), id)),
      listUnifiedMappings: listRpc(
        UnifiedMappingService.method.listUnifiedMappings,
        unifiedMappingToProto,
        byId({
          list: 'unified_mapping',
          owner: (context) => ownerOf(writerOf(context)),
          filter: mappingFilterFromProto,
          read: (range, context, filter) => selectMappings(database.pool, writerOf(context), filter, range),
        }),
      ),
      updateUnifiedMapping: async (request, context) => {
        const change = mappingChangeFromProto(request)
        const { mapping, warnings } = await database.transaction((tx) => updateMapping(tx, writerOf(context), change))
        unifiedMappings.invalidate()
        return unifiedMappingToProto({ ...mapping, warnings })
      },
      deleteUnifiedMapping: async ({ id, etag }, context) => {
        const input = { id, version: versionFrom(etag) }
        await database.transaction((tx) => deleteMapping(tx, writerOf(context), input))
        unifiedMappings.invalidate()
        return {}
      },
      checkUnifiedMapping: async (request, context) => {
        const layer = await layerOf(deps, database.pool, writerOf(context), request)
        const findings = await checkLayer(database.pool, layer, '')
        return {
          valid: findings.every(({ severity }) => severity !== 'error'),
          findings: findings.map(mappingFindingToProto),
        }
      },
      pushUnifiedMappings: async (request, context) => {
        const writer = writerOf(context)
        // Models belong to the team: they alone need no environment.
        if (request.models.length === 0 && mappingScopeOf(request) !== 'base') environmentOf(writer)
        const push = async (tx: Tx) => {
          // Also where no mapping asks for it.
          if (request.integratedAccountId !== undefined)
            await getIntegratedAccount(
              deps.accounts,
              tx,
              { environmentId: environmentOf(writer) },
              request.integratedAccountId,
            )
          const layers: LayerToCheck[] = []
          for (const each of placedMappingsOf(request)) layers.push(await layerOf(deps, tx, writer, each))
          return await pushMappings(tx, writer, modelsToPush(request), layers)
        }
        if (request.validateOnly === true) return pushResultToProto(await database.rolledBack(push))
        const result = await database.transaction(push)
        unifiedMappings.invalidate()
        return pushResultToProto(result)
      },
      tryUnifiedMapping: async (request, context) => {
        const { tried, findings } = await tryUnifiedMapping(deps, context, environmentCallerOf(context), request)
        return triedMappingToProto(tried, findings)
      },
    },
    {
      createUnifiedMapping: mappingPlaceFindings,
      checkUnifiedMapping: mappingPlaceFindings,
      pushUnifiedMappings: pushFindings,
    },
  )
}

function writerOf(context: Pick<HandlerContext, 'values'>): MappingWriter {
  const { kind, teamId, environmentId } = callerOf(context)
  return { teamId, environmentId, mayWriteBase: kind === 'team' }
}

function ownerOf({ environmentId, teamId }: MappingWriter): string {
  return environmentId ?? teamId
}

/** @throws Failure ENVIRONMENT_REQUIRED for a team token that names none */
function environmentOf({ environmentId }: MappingWriter): string {
  if (environmentId !== undefined) return environmentId
  const message =
    'a mapping of an environment or account needs one: name it in the header "patchbay-environment", or give the scope base, which holds in all environments'
  throw new Failure('ENVIRONMENT_REQUIRED', message)
}

/**
 * The layer that a request describes.
 *
 * @throws Failure ENVIRONMENT_REQUIRED, RESOURCE_NOT_FOUND for an unknown account, INVALID_FIELD for the name of another
 * integration than its own
 */
async function layerOf(
  { accounts }: MappingServiceDeps,
  tx: Db,
  writer: MappingWriter,
  request: PlacedRequest,
): Promise<LayerToCheck> {
  const { model, resource, method = '*', integrationName = '', integratedAccountId } = request
  const config: JsonObject = request.config ?? {}
  const layer = { teamId: writer.teamId, model, resource, method, integrationName, config }
  if (mappingScopeOf(request) === 'base') return layer
  const environmentId = environmentOf(writer)
  if (integratedAccountId === undefined) return { ...layer, environmentId }
  const account = await getIntegratedAccount(accounts, tx, { environmentId }, integratedAccountId)
  if (request.integrationName !== undefined && request.integrationName !== account.integration.name)
    throw invalidFields([
      {
        field: 'integration_name',
        description: `must be that of the account, ${account.integration.name}`,
        rule: 'unified_mapping.integration_name',
      },
    ])
  return { ...layer, environmentId, integratedAccountId, integrationName: account.integration.name }
}
