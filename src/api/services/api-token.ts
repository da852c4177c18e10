import { ApiTokenService } from '../../../gen/patchbay/v1/api_token_service_pb.ts'
import {
  createApiToken,
  deleteApiToken,
  getApiToken,
  listApiTokens,
  revokeApiToken,
  updateApiToken,
} from '../../tenancy/index.ts'
import { apiTokenInputFromProto, apiTokenToProto } from '../convert/api-token.ts'
import { versionFrom } from '../convert/etag.ts'
import { pageById, queryOf } from '../convert/page.ts'
import { dateFrom } from '../convert/timestamp.ts'
import { type IdempotencyDeps, runIdempotent } from '../idempotency.ts'
import { defineService, type ServiceDefinition } from '../service.ts'

/** Administers the API tokens of the caller's team and its environments. */
export function apiTokenService(deps: IdempotencyDeps): ServiceDefinition {
  const { database } = deps
  return defineService(ApiTokenService, {
    createApiToken: {
      access: 'team',
      handle: (request, { principal }) =>
        runIdempotent(deps, principal.teamId, ApiTokenService.method.createApiToken, request, async (tx) => {
          const { apiToken, token } = await createApiToken(tx, principal, apiTokenInputFromProto(request))
          return apiTokenToProto(apiToken, token)
        }),
    },
    getApiToken: {
      access: 'team',
      handle: async ({ id }, { principal: { teamId } }) =>
        apiTokenToProto(await getApiToken(database.pool, teamId, id)),
    },
    listApiTokens: {
      access: 'team',
      handle: async (request, { principal: { teamId } }) => {
        const query = queryOf('api_token', teamId)
        const page = await pageById(query, request, (range) => listApiTokens(database.pool, teamId, range))
        return { apiTokens: page.items.map((token) => apiTokenToProto(token)), nextPageToken: page.nextPageToken }
      },
    },
    updateApiToken: {
      access: 'team',
      handle: async ({ id, name, expiresAt, etag }, { principal: { teamId } }) => {
        const input = { id, name, expiresAt: dateFrom(expiresAt), version: versionFrom(etag) }
        return apiTokenToProto(await updateApiToken(database.pool, teamId, input))
      },
    },
    revokeApiToken: {
      access: 'team',
      handle: async ({ id }, { principal: { teamId } }) =>
        apiTokenToProto(await revokeApiToken(database.pool, teamId, id)),
    },
    deleteApiToken: {
      access: 'team',
      handle: async ({ id, etag }, { principal: { teamId } }) => {
        await deleteApiToken(database.pool, teamId, { id, version: versionFrom(etag) })
        return {}
      },
    },
  })
}
