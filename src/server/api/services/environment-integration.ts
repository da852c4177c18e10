import { EnvironmentIntegrationService } from '../../../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { checkConfig, isLargeConfig } from '../../../engine/definitions/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import {
  createEnvironmentIntegration,
  deleteEnvironmentIntegration,
  getEnvironmentIntegration,
  listEnvironmentIntegrations,
  resolveEnvironmentIntegration,
  updateEnvironmentIntegration,
} from '../../../platform/integrations/index.ts'
import { callbackUriOf } from '../../../platform/links/index.ts'
import { environmentCallerOf, environmentIdOf } from '../caller.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import {
  environmentIntegrationChangeFromProto,
  environmentIntegrationFilterFromProto,
  environmentIntegrationInputFromProto,
  environmentIntegrationToProto,
  resolvedConfigToProto,
} from './environment-integration.convert.ts'
import { runIdempotent } from './idempotency.ts'
import { viewFromProto } from './integration.convert.ts'
import { byId, listRpc } from './list-rpc.ts'
import { versionFrom } from './values.convert.ts'

/** Installs integrations in an environment and overrides their config there. */
export function environmentIntegrationService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'integrations' | 'links'>,
): ServiceDefinition {
  const { database, integrations } = deps
  return defineService(
    EnvironmentIntegrationService,
    {
      createEnvironmentIntegration: (request, context) => {
        const { createEnvironmentIntegration: method } = EnvironmentIntegrationService.method
        const input = environmentIntegrationInputFromProto(request)
        return runIdempotent(deps, environmentIdOf(context), method, request, async (tx) =>
          environmentIntegrationToProto(
            await createEnvironmentIntegration(integrations, tx, environmentCallerOf(context), input),
          ),
        )
      },
      getEnvironmentIntegration: async ({ id }, context) =>
        environmentIntegrationToProto(await getEnvironmentIntegration(database.pool, environmentCallerOf(context), id)),
      listEnvironmentIntegrations: listRpc(
        EnvironmentIntegrationService.method.listEnvironmentIntegrations,
        environmentIntegrationToProto,
        byId({
          list: 'environment_integration',
          owner: environmentIdOf,
          filter: (request) => ({
            ...environmentIntegrationFilterFromProto(request),
            view: viewFromProto(request.view),
          }),
          read: (range, context, { view, ...filter }) =>
            listEnvironmentIntegrations(database.pool, environmentCallerOf(context), filter, { ...range, view }),
        }),
      ),
      updateEnvironmentIntegration: async (request, context) => {
        const change = environmentIntegrationChangeFromProto(request)
        return environmentIntegrationToProto(
          await database.transaction((tx) =>
            updateEnvironmentIntegration(integrations, tx, environmentCallerOf(context), change),
          ),
        )
      },
      deleteEnvironmentIntegration: async ({ id, etag, force }, context) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) =>
          deleteEnvironmentIntegration(integrations, tx, environmentCallerOf(context), input),
        )
        return {}
      },
      resolveEnvironmentIntegration: async ({ id }, context) =>
        resolvedConfigToProto({
          ...(await resolveEnvironmentIntegration(database.pool, environmentCallerOf(context), id)),
          redirectUri: callbackUriOf(deps.links),
        }),
    },
    { createEnvironmentIntegration: ({ override }) => overrideFindings(override) },
  )
}

/**
 * Findings about an override alone, reported with all others of the request. A large override is checked later, in a worker
 * thread, together with its definition.
 */
function overrideFindings(override: JsonObject | undefined): readonly Finding[] {
  if (override === undefined || isLargeConfig(override)) return []
  return checkConfig(override, 'override', 'override').map((violation) => ({
    ...violation,
    reason: 'DEFINITION_INVALID',
  }))
}
