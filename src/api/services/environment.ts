import type { MessageInitShape } from '@bufbuild/protobuf'
import type { EnvironmentSchema } from '../../../gen/patchbay/v1/environment_pb.ts'
import { EnvironmentService } from '../../../gen/patchbay/v1/environment_service_pb.ts'
import {
  type CascadeDelete,
  createEnvironment,
  deleteEnvironment,
  type EnvironmentRecord,
  getEnvironment,
  listEnvironments,
  updateEnvironment,
} from '../../tenancy/index.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import { type IdempotencyDeps, runIdempotent } from './idempotency.ts'
import { pageById, queryOf } from './page.ts'
import { timestampFrom, toEtag, versionFrom } from './values.convert.ts'

/** What the service needs beside the database. */
export interface EnvironmentServiceDeps extends IdempotencyDeps {
  readonly contents: CascadeDelete
}

/** Administers the environments of the caller's team. */
export function environmentService(deps: EnvironmentServiceDeps): ServiceDefinition {
  const { database } = deps
  return defineService(EnvironmentService, {
    createEnvironment: {
      access: 'team',
      handle: (request, { principal: { teamId } }) =>
        runIdempotent(deps, teamId, EnvironmentService.method.createEnvironment, request, async (tx) =>
          environmentToProto(await createEnvironment(tx, teamId, request)),
        ),
    },
    getEnvironment: {
      access: 'team',
      handle: async ({ id }, { principal: { teamId } }) =>
        environmentToProto(await getEnvironment(database.pool, teamId, id)),
    },
    listEnvironments: {
      access: 'team',
      handle: async (request, { principal: { teamId } }) => {
        const query = queryOf('environment', teamId)
        const page = await pageById(query, request, (range) => listEnvironments(database.pool, teamId, range))
        return { environments: page.items.map(environmentToProto), nextPageToken: page.nextPageToken }
      },
    },
    updateEnvironment: {
      access: 'team',
      handle: async ({ id, name, etag }, { principal: { teamId } }) =>
        environmentToProto(await updateEnvironment(database.pool, teamId, { id, name, version: versionFrom(etag) })),
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

/** An environment of the caller's team. */
function environmentToProto(environment: EnvironmentRecord): MessageInitShape<typeof EnvironmentSchema> {
  return {
    id: environment.id,
    teamId: environment.teamId,
    name: environment.name,
    createdAt: timestampFrom(environment.createdAt),
    updatedAt: timestampFrom(environment.updatedAt),
    etag: toEtag(environment.version),
  }
}
