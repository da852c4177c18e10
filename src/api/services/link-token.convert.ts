import type { MessageInitShape } from '@bufbuild/protobuf'
import type { LinkTokenSchema, LinkTokenStepSchema } from '../../../gen/patchbay/v1/link_token_pb.ts'
import type { CreateLinkTokenRequest, ListLinkTokensRequest } from '../../../gen/patchbay/v1/link_token_service_pb.ts'
import { REGIONS } from '../../base/index.ts'
import {
  LINK_STATUSES,
  type LinkSessionFilter,
  type LinkSessionHistory,
  type LinkSessionInput,
  type LinkTransition,
} from '../../link-sessions/index.ts'
import { structFrom } from '../messages/struct.ts'
import { dateFrom, parseEnum, timestampFrom } from './values.convert.ts'

/** A link without its secret. */
export function linkTokenToProto({
  session,
  transitions,
}: LinkSessionHistory): MessageInitShape<typeof LinkTokenSchema> & { readonly id: string } {
  return {
    id: session.id,
    environmentId: session.environmentId,
    status: session.status,
    step: session.step,
    tenantId: session.tenantId,
    isReconnect: session.isReconnect,
    integratedAccountId: session.integratedAccountId ?? undefined,
    environmentIntegrationIds: [...(session.allowedInstallationIds ?? [])],
    environmentIntegrationId: session.environmentIntegrationId ?? undefined,
    integration: session.integrationName ?? undefined,
    authenticationMethod: session.authenticationMethod ?? undefined,
    credential: session.credential ?? undefined,
    allowedCredentials: [...(session.allowedCredentials ?? [])],
    scopes: [...session.scopes],
    grantedScopes: [...session.grantedScopes],
    missingScopes: [...session.missingScopes],
    context: structFrom(session.context),
    region: session.region,
    isSandbox: session.isSandbox,
    redirectUri: session.redirectUri,
    origins: [...session.origins],
    locale: session.locale,
    persistPreviousContext: session.persistPreviousContext,
    skipPostConnectForm: session.skipPostConnectForm,
    errorCode: session.error?.code,
    errorMessage: session.error?.message,
    steps: transitions.map(stepToProto),
    expiresAt: timestampFrom(session.expiresAt),
    createdAt: timestampFrom(session.createdAt),
    updatedAt: timestampFrom(session.updatedAt),
    objectStoreContextFields: [...session.objectStoreContextFields],
    termsUrl: session.termsUrl,
    termsAcceptedAt: session.termsAcceptedAt === null ? undefined : timestampFrom(session.termsAcceptedAt),
  }
}

function stepToProto(transition: LinkTransition): MessageInitShape<typeof LinkTokenStepSchema> {
  return {
    fromStatus: transition.fromStatus ?? undefined,
    toStatus: transition.toStatus,
    cause: transition.cause,
    errorCode: transition.errorCode ?? undefined,
    message: transition.message,
    occurredAt: timestampFrom(transition.occurredAt),
  }
}

/** The session to create. The contract guarantees exactly one subject. */
export function linkSessionInputFromProto(request: CreateLinkTokenRequest): LinkSessionInput {
  const { case: kind, value = '' } = request.subject
  return {
    subject: kind === 'integratedAccountId' ? { integratedAccountId: value } : { tenantId: value },
    integrations: request.integrations,
    allowedCredentials: request.allowedCredentials,
    scopes: request.scopes,
    context: request.context ?? {},
    region: parseEnum(REGIONS, request.region),
    isSandbox: request.isSandbox,
    objectStoreContextFields: request.objectStoreContextFields,
    redirectUri: request.redirectUri ?? '',
    origins: request.origins,
    locale: request.locale ?? '',
    expiresAt: dateFrom(request.expiresAt),
    expiresInSeconds: request.expiresIn,
    persistPreviousContext: request.persistPreviousContext ?? false,
    skipPostConnectForm: request.skipPostConnectForm ?? false,
  }
}

/** The filter of a list of links; absent fields do not restrict. */
export function linkSessionFilterFromProto(request: ListLinkTokensRequest): LinkSessionFilter {
  const { tenantId, integratedAccountId } = request
  return { tenantId, integratedAccountId, status: parseEnum(LINK_STATUSES, request.status) }
}
