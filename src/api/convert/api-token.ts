import type { MessageInitShape } from '@bufbuild/protobuf'
import type { ApiTokenSchema } from '../../../gen/patchbay/v1/api_token_pb.ts'
import type { CreateApiTokenRequest } from '../../../gen/patchbay/v1/api_token_service_pb.ts'
import { type ApiTokenRecord, toEtag } from '../../storage/index.ts'
import type { ApiTokenInput } from '../../tenancy/index.ts'
import { dateFrom, timestampFrom } from './timestamp.ts'

/**
 * A token as it can be read back.
 *
 * @param secret given in the one answer that shows it: of creation
 */
export function apiTokenToProto(token: ApiTokenRecord, secret?: string): MessageInitShape<typeof ApiTokenSchema> {
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

/** The contract has seen to it that an environment is named exactly when the kind is `environment`. */
export function apiTokenInputFromProto(request: CreateApiTokenRequest): ApiTokenInput {
  const { name, environmentId, teamId } = request
  const expiresAt = dateFrom(request.expiresAt)
  if (environmentId !== undefined) return { kind: 'environment', environmentId, name, expiresAt }
  return { kind: 'team', teamId, name, expiresAt }
}
