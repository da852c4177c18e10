import { EnvironmentIntegrationService } from '../../../gen/patchbay/v1/environment_integration_service_pb.ts'
import type { JsonObject } from '../../base/index.ts'
import { checkConfig, isLargeConfig } from '../../definitions/index.ts'
import {
  createEnvironmentIntegration,
  deleteEnvironmentIntegration,
  type EnvironmentIntegrationDeps,
  getEnvironmentIntegration,
  type InstallationDeleteDeps,
  listEnvironmentIntegrations,
  resolveEnvironmentIntegration,
  updateEnvironmentIntegration,
} from '../../integrations/index.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import {
  environmentIntegrationChangeFromProto,
  environmentIntegrationFilterFromProto,
  environmentIntegrationInputFromProto,
  environmentIntegrationToProto,
  resolvedConfigToProto,
} from './environment-integration.convert.ts'
import { type IdempotencyDeps, runIdempotent } from './idempotency.ts'
import { viewFromProto } from './integration.convert.ts'
import { pageById, queryOf } from './page.ts'
import { versionFrom } from './values.convert.ts'

/** What the service needs. */
export interface EnvironmentIntegrationServiceDeps extends IdempotencyDeps {
  readonly integrations: EnvironmentIntegrationDeps & InstallationDeleteDeps
}

/** Installs integrations in an environment and overrides their config there. */
export function environmentIntegrationService(deps: EnvironmentIntegrationServiceDeps): ServiceDefinition {
  const { database, integrations } = deps
  return defineService(EnvironmentIntegrationService, {
    createEnvironmentIntegration: {
      access: 'environment',
      check: ({ override }) => overrideFindings(override),
      handle: (request, { principal }) => {
        const { createEnvironmentIntegration: method } = EnvironmentIntegrationService.method
        const input = environmentIntegrationInputFromProto(request)
        return runIdempotent(deps, principal.environmentId, method, request, async (tx) =>
          environmentIntegrationToProto(await createEnvironmentIntegration(integrations, tx, principal, input)),
        )
      },
    },
    getEnvironmentIntegration: {
      access: 'environment',
      handle: async ({ id }, { principal }) =>
        environmentIntegrationToProto(await getEnvironmentIntegration(database.pool, principal, id)),
    },
    listEnvironmentIntegrations: {
      access: 'environment',
      handle: async (request, { principal }) => {
        const filter = environmentIntegrationFilterFromProto(request)
        const view = viewFromProto(request.view)
        const query = queryOf('environment_integration', principal.environmentId, { ...filter, view })
        const page = await pageById(query, request, (range) =>
          listEnvironmentIntegrations(database.pool, principal, filter, { ...range, view }),
        )
        const environmentIntegrations = page.items.map(environmentIntegrationToProto)
        return { environmentIntegrations, nextPageToken: page.nextPageToken }
      },
    },
    updateEnvironmentIntegration: {
      access: 'environment',
      handle: async (request, { principal }) => {
        const change = environmentIntegrationChangeFromProto(request)
        return environmentIntegrationToProto(
          await database.transaction((tx) => updateEnvironmentIntegration(integrations, tx, principal, change)),
        )
      },
    },
    deleteEnvironmentIntegration: {
      access: 'environment',
      handle: async ({ id, etag, force }, { principal }) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteEnvironmentIntegration(integrations, tx, principal, input))
        return {}
      },
    },
    resolveEnvironmentIntegration: {
      access: 'environment',
      handle: async ({ id }, { principal }) =>
        resolvedConfigToProto(await resolveEnvironmentIntegration(database.pool, principal, id)),
    },
  })
}

/**
 * What is wrong with a given override by itself, to be told together with everything else that is wrong with the request. A
 * large one is checked later, in a worker thread, together with its definition.
 */
function overrideFindings(override: JsonObject | undefined): readonly Finding[] {
  if (override === undefined || isLargeConfig(override)) return []
  return checkConfig(override, 'override', 'override').map((violation) => ({
    ...violation,
    reason: 'DEFINITION_INVALID',
  }))
}
