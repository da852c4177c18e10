import { ApiTokenSchema } from '../../../../gen/patchbay/v1/api_token_pb.ts'
import { ApiTokenService, type CreateApiTokenRequest } from '../../../../gen/patchbay/v1/api_token_service_pb.ts'
import { notFound } from '../../../foundation/base/index.ts'
import type { Db } from '../../../foundation/database/index.ts'
import { findAccountOwner } from '../../../platform/accounts/index.ts'
import {
  type ApiTokenInput,
  type ApiTokenRecord,
  createApiToken,
  deleteApiToken,
  findUnknownScopes,
  findUnlimitableScopes,
  getApiToken,
  listApiTokens,
  revokeApiToken,
  type ScopeChoice,
  TOKEN_PRESETS,
  type TokenLimits,
  updateApiToken,
} from '../../../platform/tenancy/index.ts'
import { callerOf, teamIdOf } from '../caller.ts'
import { defineService, type Finding, type ServiceDefinition } from '../operation.ts'
import type { IdempotencyDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { dateFrom, parseEnum, versionFrom } from './values.convert.ts'

/** Administers the API tokens of the caller's team and its environments. */
export function apiTokenService(deps: IdempotencyDeps): ServiceDefinition {
  const { database } = deps
  return defineService(
    ApiTokenService,
    {
      createApiToken: (request, context) =>
        runIdempotent(deps, teamIdOf(context), ApiTokenService.method.createApiToken, request, async (tx) => {
          const input = apiTokenInputFromProto(request)
          await assertLimitExists(tx, input)
          const { apiToken, token } = await createApiToken(tx, callerOf(context), input)
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
    },
    { createApiToken: checkCreation },
  )
}

/** An API token; the response of its creation alone has the secret, as `token`. */
const apiTokenToProto = shapeOf(ApiTokenSchema).from<ApiTokenRecord & { readonly token?: string }>()

/** The contract guarantees that an environment is named exactly when the kind is `environment`. */
function apiTokenInputFromProto(request: CreateApiTokenRequest): ApiTokenInput {
  const { name, environmentId, teamId } = request
  const expiresAt = dateFrom(request.expiresAt)
  const scopes = scopesFromProto(request)
  const limits = limitsFromProto(request)
  if (environmentId !== undefined) return { kind: 'environment', environmentId, name, scopes, limits, expiresAt }
  return { kind: 'team', teamId, name, scopes, expiresAt }
}

/** The contract guarantees that either is given. */
function scopesFromProto({ preset, scopes }: CreateApiTokenRequest): ScopeChoice {
  return preset === undefined ? { scopes } : { preset: parseEnum(TOKEN_PRESETS, preset) }
}

function limitsFromProto({ limits }: CreateApiTokenRequest): TokenLimits | undefined {
  if (limits === undefined) return undefined
  const { tenantIds, integrations, integratedAccountId } = limits
  return { tenantIds, integrations, integratedAccountId: integratedAccountId?.toLowerCase() ?? null }
}

function checkCreation(request: CreateApiTokenRequest): readonly Finding[] {
  const unknown = findUnknownScopes(request.scopes, 'scopes')
  const isPreset = TOKEN_PRESETS.some((name) => name === request.preset)
  if (request.limits === undefined || (request.preset !== undefined && !isPreset)) return unknown
  return [
    ...unknown,
    ...findUnlimitableScopes(scopesFromProto(request), request.preset === undefined ? 'scopes' : 'preset'),
  ]
}

/** @throws Failure RESOURCE_NOT_FOUND for an account that is not in the environment of the token */
async function assertLimitExists(tx: Db, input: ApiTokenInput): Promise<void> {
  const id = input.limits?.integratedAccountId
  if (id === undefined || id === null || input.kind !== 'environment') return
  const owner = await findAccountOwner(tx, { environmentId: input.environmentId, id })
  if (owner === undefined) throw notFound('integrated_account', id)
}
