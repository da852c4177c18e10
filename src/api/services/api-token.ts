import { ApiTokenSchema } from '../../../gen/patchbay/v1/api_token_pb.ts'
import { ApiTokenService, type CreateApiTokenRequest } from '../../../gen/patchbay/v1/api_token_service_pb.ts'
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
import { byId, listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { dateFrom, versionFrom } from './values.convert.ts'

/** Administers the API tokens of the caller's team and its environments. */
export function apiTokenService(deps: IdempotencyDeps): ServiceDefinition {
  const { database } = deps
  return defineService(ApiTokenService, {
    createApiToken: (request, context) =>
      runIdempotent(deps, teamIdOf(context), ApiTokenService.method.createApiToken, request, async (tx) => {
        const { apiToken, token } = await createApiToken(tx, callerOf(context), apiTokenInputFromProto(request))
        return apiTokenToProto({ ...apiToken, token })
      }),
    getApiToken: async ({ id }, context) => apiTokenToProto(await getApiToken(database.pool, teamIdOf(context), id)),
    listApiTokens: listRpc(
      ApiTokenService.method.listApiTokens,
      apiTokenToProto,
      byId({
        list: 'api_token',
        owner: teamIdOf,
        read: (range, context) => listApiTokens(database.pool, teamIdOf(context), range),
      }),
    ),
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

/** An API token; the response of its creation alone has the secret, as `token`. */
const apiTokenToProto = shapeOf(ApiTokenSchema).from<ApiTokenRecord & { readonly token?: string }>()

/** The contract guarantees that an environment is named exactly when the kind is `environment`. */
function apiTokenInputFromProto(request: CreateApiTokenRequest): ApiTokenInput {
  const { name, environmentId, teamId } = request
  const expiresAt = dateFrom(request.expiresAt)
  if (environmentId !== undefined) return { kind: 'environment', environmentId, name, expiresAt }
  return { kind: 'team', teamId, name, expiresAt }
}
