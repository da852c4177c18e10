import type { ServiceImpl } from '@connectrpc/connect'
import { IntegrationService } from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import { findWarnings, listTools } from '../../../engine/definitions/index.ts'
import {
  decodePageToken,
  listQuery,
  type PageCursor,
  readPageSize,
  toPage,
} from '../../../foundation/database/index.ts'
import {
  checkDefinition,
  createIntegration,
  createIntegrationGrant,
  deleteIntegration,
  deleteIntegrationGrant,
  type GrantCursor,
  getIntegration,
  listIntegrationGrants,
  listIntegrations,
  updateIntegration,
} from '../../../platform/integrations/index.ts'
import { callbackUriOf } from '../../../platform/links/index.ts'
import { teamIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { IdempotencyDeps, ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import {
  findingToProto,
  integrationChangeFromProto,
  integrationGrantToProto,
  integrationInputFromProto,
  integrationToProto,
  toolToProto,
  viewFromProto,
} from './integration.convert.ts'
import { byId, listRpc } from './list-rpc.ts'
import { versionFrom } from './values.convert.ts'

/** Administers and checks definitions, and grants them to other teams. */
export function integrationService(
  deps: Pick<ServiceDeps, 'clock' | 'database' | 'secrets' | 'integrations' | 'links'>,
): ServiceDefinition {
  const { database, integrations } = deps
  return defineService(IntegrationService, {
    createIntegration: (request, context) =>
      runIdempotent(deps, teamIdOf(context), IntegrationService.method.createIntegration, request, async (tx) =>
        integrationToProto(
          await createIntegration(integrations, tx, teamIdOf(context), integrationInputFromProto(request)),
        ),
      ),
    getIntegration: async ({ id }, context) =>
      integrationToProto(await getIntegration(database.pool, teamIdOf(context), id)),
    listIntegrations: listRpc(
      IntegrationService.method.listIntegrations,
      integrationToProto,
      byId({
        list: 'integration',
        owner: teamIdOf,
        filter: ({ view }) => ({ view: viewFromProto(view) }),
        read: (range, context, { view }) => listIntegrations(database.pool, teamIdOf(context), { ...range, view }),
      }),
    ),
    updateIntegration: async (request, context) => {
      const change = integrationChangeFromProto(request)
      return integrationToProto(
        await database.transaction((tx) => updateIntegration(integrations, tx, teamIdOf(context), change)),
      )
    },
    deleteIntegration: async ({ id, etag, force }, context) => {
      const input = { id, version: versionFrom(etag), force }
      await database.transaction((tx) => deleteIntegration(integrations, tx, teamIdOf(context), input))
      return {}
    },
    checkIntegration: async ({ config = {}, kind }, context) => {
      const owner = { owner: teamIdOf(context), signal: context.signal }
      const findings = await checkDefinition(
        integrations,
        config,
        kind === 'override' ? 'override' : 'integration',
        owner,
      )
      const warnings = kind === 'override' ? [] : findWarnings(config, '', deps.clock.now()).map(findingToProto)
      const redirectUri = callbackUriOf(deps.links)
      return { valid: findings.length === 0, findings: findings.map(findingToProto), warnings, redirectUri }
    },
    listIntegrationTools: async ({ id, methods, tags }, context) => {
      const { config = {} } = await getIntegration(database.pool, teamIdOf(context), id)
      return { tools: listTools(config, { methods, tags }).map(toolToProto) }
    },
    ...integrationGrantHandlers(deps),
  })
}

type GrantMethod = 'createIntegrationGrant' | 'listIntegrationGrants' | 'deleteIntegrationGrant'

/** Grants of `sharing: ask`: which other teams may install an integration. */
function integrationGrantHandlers(deps: IdempotencyDeps): Pick<ServiceImpl<typeof IntegrationService>, GrantMethod> {
  const { database } = deps
  return {
    createIntegrationGrant: (request, context) =>
      runIdempotent(deps, teamIdOf(context), IntegrationService.method.createIntegrationGrant, request, async (tx) =>
        integrationGrantToProto(await createIntegrationGrant(tx, teamIdOf(context), request)),
      ),
    listIntegrationGrants: listRpc(
      IntegrationService.method.listIntegrationGrants,
      integrationGrantToProto,
      async (request, context) => {
        const { integrationId } = request
        const query = listQuery('integration_grant', teamIdOf(context), { integrationId })
        const size = readPageSize(request)
        const after = positionOf(decodePageToken(query, request.pageToken, ['time', 'uuid']))
        const range = { after, limit: size + 1 }
        const found = await listIntegrationGrants(database.pool, teamIdOf(context), integrationId, range)
        return toPage(query, found, size, (grant) => [grant.createdAt.getTime(), grant.teamId])
      },
    ),
    deleteIntegrationGrant: async (request, context) => {
      await deleteIntegrationGrant(database.pool, teamIdOf(context), request)
      return {}
    },
  }
}

function positionOf(cursor: PageCursor | undefined): GrantCursor | undefined {
  if (cursor === undefined) return undefined
  const [createdAtMs, teamId] = cursor
  return { createdAt: new Date(Number(createdAtMs)), teamId: String(teamId) }
}
