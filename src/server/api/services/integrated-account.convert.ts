import {
  ForbiddenErrorSchema,
  IntegratedAccountHistoryEntrySchema,
  IntegratedAccountSchema,
  WebhookActivitySchema,
  WebhookSubscriptionSchema,
} from '../../../../gen/patchbay/v1/integrated_account_pb.ts'
import type {
  CreateIntegratedAccountRequest,
  ListIntegratedAccountsRequest,
  UpdateIntegratedAccountCredentialsRequest,
  UpdateIntegratedAccountRequest,
} from '../../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import type { AuthenticationMethod } from '../../../engine/formats/index.ts'
import { REGIONS } from '../../../foundation/queue/index.ts'
import type {
  AccountFilter,
  AccountHistoryRecord,
  AccountStatus,
  CredentialsChange,
  ForbiddenError,
  IntegratedAccount,
  IntegratedAccountChange,
  IntegratedAccountInput,
  WithWholeContext,
} from '../../../platform/accounts/index.ts'
import type { WebhookOverview } from '../../../platform/subscriptions/index.ts'
import { shapeOf } from './shape.ts'
import { parseEnum, timestampFrom, versionFrom } from './values.convert.ts'

const STATUSES = [
  'active',
  'connecting',
  'post_install_error',
  'validation_error',
  'needs_reauth',
] as const satisfies readonly AccountStatus[]

const METHODS = [
  'oauth2',
  'api_key',
  'oauth2_client_credentials',
  'vendor_oauth',
] as const satisfies readonly AuthenticationMethod[]

const INT32_MAX = 2 ** 31 - 1

/** An account as an answer shows it. */
export type AccountView = WithWholeContext<IntegratedAccount> & {
  /** Absent: left out. */
  readonly webhooks?: WebhookOverview | undefined
}

/** An account with its integration. The records have no credentials. */
export const integratedAccountToProto = shapeOf(IntegratedAccountSchema).from<AccountView>({
  contextErrors: ({ contextErrors }) =>
    [...contextErrors].map(([key, { reason, publicMessage }]) => ({ key, reason, message: publicMessage })),
  lastForbiddenError: ({ lastForbiddenError }) => lastForbiddenError && forbiddenErrorToProto(lastForbiddenError),
  webhookSubscriptions: ({ webhooks }) => webhooks?.subscriptions.map(subscriptionToProto),
  webhookActivity: ({ webhooks }) => webhooks?.activity && activityToProto(webhooks.activity),
})

const subscriptionToProto = shapeOf(WebhookSubscriptionSchema).from<WebhookOverview['subscriptions'][number]>({
  externalId: ({ externalId }) =>
    externalId === null || typeof externalId === 'string' ? externalId : JSON.stringify(externalId),
  lastError: ({ error }) => error,
})

const activityToProto = shapeOf(WebhookActivitySchema).from<NonNullable<WebhookOverview['activity']>>({
  inboundCount: ({ inboundCount }) => Math.min(inboundCount, INT32_MAX),
  usualGapSeconds: ({ usualGapSeconds }) => Math.min(Math.round(usualGapSeconds), INT32_MAX),
})

const forbiddenErrorToProto = shapeOf(ForbiddenErrorSchema).from<ForbiddenError>({
  occurredAt: ({ occurred_at }) => timestampFrom(new Date(occurred_at)),
})

/** The account to connect, with the credentials of the request. */
export function integratedAccountInputFromProto(request: CreateIntegratedAccountRequest): IntegratedAccountInput {
  const { environmentIntegrationId, tenantId, credential, credentials, context, isSandbox, objectStoreContextFields } =
    request
  const authenticationMethod = parseEnum(METHODS, request.authenticationMethod)
  const region = parseEnum(REGIONS, request.region)
  return {
    environmentIntegrationId,
    tenantId,
    authenticationMethod,
    credential,
    credentials,
    context,
    region,
    isSandbox,
    objectStoreContextFields,
  }
}

/** The changes of an account; a null inside the context is kept, because it removes the key. */
export function integratedAccountChangeFromProto(request: UpdateIntegratedAccountRequest): IntegratedAccountChange {
  const { id, tenantId, context, etag } = request
  return { id, tenantId, context, version: versionFrom(etag) }
}

/** New credentials for an account. */
export function credentialsChangeFromProto(request: UpdateIntegratedAccountCredentialsRequest): CredentialsChange {
  const { id, credential, credentials = {}, confirmIdentityChange: isIdentityChangeConfirmed, etag } = request
  return { id, credential, credentials, isIdentityChangeConfirmed, version: versionFrom(etag) }
}

/** The filter of a list of accounts; absent fields do not restrict. */
export function integratedAccountFilterFromProto(request: ListIntegratedAccountsRequest): AccountFilter {
  const { tenantId, environmentIntegrationId, integrationName, credential, isSandbox } = request
  const status = parseEnum(STATUSES, request.status)
  const region = parseEnum(REGIONS, request.region)
  return { tenantId, status, environmentIntegrationId, integrationName, credential, isSandbox, region }
}

/** One change of status; the first entry has no status before it. */
export const historyEntryToProto = shapeOf(IntegratedAccountHistoryEntrySchema).from<AccountHistoryRecord>()
