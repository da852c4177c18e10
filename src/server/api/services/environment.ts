import { EnvironmentSchema } from '../../../../gen/patchbay/v1/environment_pb.ts'
import { EnvironmentService } from '../../../../gen/patchbay/v1/environment_service_pb.ts'
import {
  createEnvironment,
  deleteEnvironment,
  type EnvironmentRecord,
  getEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../../platform/tenancy/index.ts'
import { teamIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { versionFrom } from './values.convert.ts'

/** Administers the environments of the caller's team. */
export function environmentService(deps: Pick<ServiceDeps, 'database' | 'secrets' | 'contents'>): ServiceDefinition {
  const { database } = deps
  return defineService(EnvironmentService, {
    createEnvironment: (request, context) =>
      runIdempotent(deps, teamIdOf(context), EnvironmentService.method.createEnvironment, request, async (tx) =>
        environmentToProto(await createEnvironment(tx, teamIdOf(context), request)),
      ),
    getEnvironment: async ({ id }, context) =>
      environmentToProto(await getEnvironment(database.pool, teamIdOf(context), id)),
    listEnvironments: listRpc(
      EnvironmentService.method.listEnvironments,
      environmentToProto,
      byId({
        list: 'environment',
        owner: teamIdOf,
        read: (range, context) => listEnvironments(database.pool, teamIdOf(context), range),
      }),
    ),
    updateEnvironment: async ({ id, name, branding, allowAccessTokens, etag }, context) =>
      environmentToProto(
        await updateEnvironment(database.pool, teamIdOf(context), {
          id,
          name,
          branding,
          allowAccessTokens,
          version: versionFrom(etag),
        }),
      ),
    deleteEnvironment: async ({ id, etag, force }, context) => {
      const input = { id, version: versionFrom(etag), force }
      await database.transaction((tx) => deleteEnvironment(deps, tx, teamIdOf(context), input))
      return {}
    },
  })
}

/** An environment of the caller's team. */
const environmentToProto = shapeOf(EnvironmentSchema).from<EnvironmentRecord>({
  branding: ({ displayName, logoUrl, accentColor }) => ({ displayName, logoUrl, accentColor }),
})
