import { EnvironmentService } from '../../../gen/patchbay/v1/environment_service_pb.ts'
import {
  type Contents,
  createEnvironment,
  deleteEnvironment,
  getEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../tenancy/index.ts'
import { environmentToProto } from '../convert/environment.ts'
import { versionFrom } from '../convert/etag.ts'
import { pageById, queryOf } from '../convert/page.ts'
import { type IdempotencyDeps, once } from '../idempotency.ts'
import { defineService, type ServiceDefinition } from '../service.ts'

/** What the service needs beside the database. */
export interface EnvironmentServiceDeps extends IdempotencyDeps {
  readonly contents: Contents
}

/** Administers the environments of the caller's team. */
export function environmentService(deps: EnvironmentServiceDeps): ServiceDefinition {
  const { database } = deps
  return defineService(EnvironmentService, {
    createEnvironment: {
      access: 'team',
      handle: (request, { principal: { teamId } }) =>
        once(deps, teamId, EnvironmentService.method.createEnvironment, request, async (tx) =>
          environmentToProto(await createEnvironment(tx, teamId, request)),
        ),
    },
    getEnvironment: {
      access: 'team',
      handle: async ({ id }, { principal: { teamId } }) =>
        environmentToProto(await getEnvironment(database.direct, teamId, id)),
    },
    listEnvironments: {
      access: 'team',
      handle: async (request, { principal: { teamId } }) => {
        const query = queryOf('environment', teamId)
        const page = await pageById(query, request, (range) => listEnvironments(database.direct, teamId, range))
        return { environments: page.items.map(environmentToProto), nextPageToken: page.nextPageToken }
      },
    },
    updateEnvironment: {
      access: 'team',
      handle: async ({ id, name, etag }, { principal: { teamId } }) =>
        environmentToProto(await updateEnvironment(database.direct, teamId, { id, name, version: versionFrom(etag) })),
    },
    deleteEnvironment: {
      access: 'team',
      handle: async ({ id, etag, force }, { principal: { teamId } }) => {
        const input = { id, version: versionFrom(etag), force }
        await database.transaction((tx) => deleteEnvironment(deps, tx, teamId, input))
        return {}
      },
    },
  })
}
