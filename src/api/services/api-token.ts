import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ApiTokenSchema } from '../../../gen/patchbay/v1/api_token_pb.ts'
import { ApiTokenService, type CreateApiTokenRequest } from '../../../gen/patchbay/v1/api_token_service_pb.ts'
import { listQuery, pageById } from '../../database/index.ts'
import {
  type ApiTokenInput,
  type ApiTokenRecord,
  createApiToken,
  deleteApiToken,
  getApiToken,
  listApiTokens,
  revokeApiToken,
  updateApiToken,
} from '../../tenancy/index.ts'
import { callerOf, teamIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { IdempotencyDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { dateFrom, timestampFrom, toEtag, versionFrom } from './values.convert.ts'

/** Administers the API tokens of the caller's team and its environments. */
export function apiTokenService(deps: IdempotencyDeps): ServiceDefinition {
  const { database } = deps
  return defineService(ApiTokenService, {
    createApiToken: (request, context) =>
      runIdempotent(deps, teamIdOf(context), ApiTokenService.method.createApiToken, request, async (tx) => {
        const { apiToken, token } = await createApiToken(tx, callerOf(context), apiTokenInputFromProto(request))
        return apiTokenToProto(apiToken, token)
      }),
    getApiToken: async ({ id }, context) => apiTokenToProto(await getApiToken(database.pool, teamIdOf(context), id)),
    listApiTokens: async (request, context) => {
      const query = listQuery('api_token', teamIdOf(context))
      const page = await pageById(query, request, (range) => listApiTokens(database.pool, teamIdOf(context), range))
      return { apiTokens: page.items.map((token) => apiTokenToProto(token)), nextPageToken: page.nextPageToken }
    },
    updateApiToken: async ({ id, name, expiresAt, etag }, context) => {
      const input = { id, name, expiresAt: dateFrom(expiresAt), version: versionFrom(etag) }
      return apiTokenToProto(await updateApiToken(database.pool, teamIdOf(context), input))
    },
    revokeApiToken: async ({ id }, context) =>
      apiTokenToProto(await database.transaction((tx) => revokeApiToken(tx, teamIdOf(context), id))),
    deleteApiToken: async ({ id, etag }, context) => {
      const input = { id, version: versionFrom(etag) }
      await database.transaction((tx) => deleteApiToken(tx, teamIdOf(context), input))
      return {}
    },
  })
}

/**
 * An API token without its secret.
 *
 * @param secret only in the response of the creation, which alone shows it
 */
function apiTokenToProto(token: ApiTokenRecord, secret?: string): MessageInitShape<typeof ApiTokenSchema> {
  return {
    id: token.id,
    kind: token.kind,
    teamId: token.teamId,
    environmentId: token.environmentId ?? undefined,
    name: token.name,
    hint: token.hint,
    expiresAt: timestampFrom(token.expiresAt),
    lastUsedAt: timestampFrom(token.lastUsedAt),
    revokedAt: timestampFrom(token.revokedAt),
    createdAt: timestampFrom(token.createdAt),
    updatedAt: timestampFrom(token.updatedAt),
    etag: toEtag(token.version),
    token: secret,
  }
}

/** The contract guarantees that an environment is named exactly when the kind is `environment`. */
function apiTokenInputFromProto(request: CreateApiTokenRequest): ApiTokenInput {
  const { name, environmentId, teamId } = request
  const expiresAt = dateFrom(request.expiresAt)
  if (environmentId !== undefined) return { kind: 'environment', environmentId, name, expiresAt }
  return { kind: 'team', teamId, name, expiresAt }
}
