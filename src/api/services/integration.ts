import { IntegrationService } from '../../../gen/patchbay/v1/integration_service_pb.ts'
import { listTools } from '../../definition/index.ts'
import {
  type AccountCascade,
  checkDefinition,
  createIntegration,
  deleteIntegration,
  getIntegration,
  type IntegrationDeps,
  listIntegrations,
  updateIntegration,
} from '../../integrations/index.ts'
import { versionFrom } from '../convert/etag.ts'
import {
  findingToProto,
  integrationChangeFromProto,
  integrationInputFromProto,
  integrationToProto,
  toolToProto,
  viewFromProto,
} from '../convert/integration.ts'
import { pageById, queryOf } from '../convert/page.ts'
import { type IdempotencyDeps, runIdempotent } from '../idempotency.ts'
import { defineService, type ServiceDefinition } from '../service.ts'
import { integrationGrantHandlers } from './integration-grant.ts'

/** What the service needs. */
export interface IntegrationServiceDeps extends IdempotencyDeps {
  readonly integrations: IntegrationDeps & { readonly accounts: AccountCascade }
}

/** Keeps definitions, checks them, and grants them to other teams. Reading works with either kind of token. */
export function integrationService(deps: IntegrationServiceDeps): ServiceDefinition {
  const { database, integrations } = deps
  return defineService(IntegrationService, {
    createIntegration: {
      access: 'team',
      handle: (request, { principal: { teamId } }) =>
        runIdempotent(deps, teamId, IntegrationService.method.createIntegration, request, async (tx) =>
          integrationToProto(await createIntegration(integrations, tx, teamId, integrationInputFromProto(request))),
        ),
    },
    getIntegration: {
      access: 'token',
      handle: async ({ id }, { principal: { teamId } }) =>
        integrationToProto(await getIntegration(database.pool, teamId, id)),
    },
    listIntegrations: {
      access: 'token',
      handle: async (request, { principal: { teamId } }) => {
        const view = viewFromProto(request.view)
        const page = await pageById(queryOf('integration', teamId, { view }), request, (range) =>
          listIntegrations(database.pool, teamId, { ...range, view }),
        )
        return { integrations: page.items.map(integrationToProto), nextPageToken: page.nextPageToken }
      },
    },
    updateIntegration: {
      access: 'team',
      handle: async (request, { principal: { teamId } }) => {
        const change = integrationChangeFromProto(request)
        return integrationToProto(
          await database.transaction((tx) => updateIntegration(integrations, tx, teamId, change)),
        )
      },
    },
    deleteIntegration: {
      access: 'team',
      handle: async ({ id, etag, force }, { principal: { teamId } }) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteIntegration(integrations, tx, teamId, input))
        return {}
      },
    },
    checkIntegration: {
      access: 'token',
      handle: async ({ config = {}, kind }) => {
        const findings = await checkDefinition(integrations, config, kind === 'override' ? 'override' : 'integration')
        return { valid: findings.length === 0, findings: findings.map(findingToProto) }
      },
    },
    listIntegrationTools: {
      access: 'token',
      handle: async ({ id, methods, tags }, { principal: { teamId } }) => {
        const { config = {} } = await getIntegration(database.pool, teamId, id)
        return { tools: listTools(config, { methods, tags }).map(toolToProto) }
      },
    },
    ...integrationGrantHandlers(deps),
  })
}
