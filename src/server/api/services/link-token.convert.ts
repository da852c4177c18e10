import { LinkTokenSchema, LinkTokenStepSchema } from '../../../../gen/patchbay/v1/link_token_pb.ts'
import type {
  CreateLinkTokenRequest,
  ListLinkTokensRequest,
} from '../../../../gen/patchbay/v1/link_token_service_pb.ts'
import { REGIONS } from '../../../foundation/queue/index.ts'
import {
  LINK_STATUSES,
  type LinkSession,
  type LinkSessionFilter,
  type LinkSessionHistory,
  type LinkSessionInput,
  type LinkTransition,
} from '../../../platform/links/index.ts'
import { shapeOf } from './shape.ts'
import { dateFrom, parseEnum } from './values.convert.ts'

/** A link; the answer to its creation alone has the secret, as `linkToken` and in `url`. */
export type LinkTokenView = LinkSession &
  Omit<LinkSessionHistory, 'session'> & { readonly linkToken?: string; readonly url?: string }

/** A link as an answer shows it. */
export const linkTokenToProto = shapeOf(LinkTokenSchema).from<LinkTokenView>({
  environmentIntegrationIds: ({ allowedInstallationIds }) => [...(allowedInstallationIds ?? [])],
  integration: ({ integrationName }) => integrationName,
  errorCode: ({ error }) => error?.code,
  errorMessage: ({ error }) => error?.message,
  steps: ({ transitions }) => transitions.map(stepToProto),
})

const stepToProto = shapeOf(LinkTokenStepSchema).from<LinkTransition>()

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
    persistPreviousContext: request.persistPreviousContext ?? true,
    skipPostConnectForm: request.skipPostConnectForm ?? false,
  }
}

/** The filter of a list of links; absent fields do not restrict. */
export function linkSessionFilterFromProto(request: ListLinkTokensRequest): LinkSessionFilter {
  const { tenantId, integratedAccountId } = request
  return { tenantId, integratedAccountId, status: parseEnum(LINK_STATUSES, request.status) }
}
