import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  IntegratedAccountHistoryEntrySchema,
  IntegratedAccountSchema,
  WebhookActivitySchema,
  WebhookSubscriptionSchema,
} from '../../../gen/patchbay/v1/integrated_account_pb.ts'
import type {
  CreateIntegratedAccountRequest,
  ListIntegratedAccountsRequest,
  UpdateIntegratedAccountCredentialsRequest,
  UpdateIntegratedAccountRequest,
} from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
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
} from '../../accounts/index.ts'
import { REGIONS } from '../../base/index.ts'
import type { AuthenticationMethod } from '../../formats/index.ts'
import type { WebhookOverview } from '../../webhook-subscriptions/index.ts'
import { structFrom } from '../messages/struct.ts'
import { embeddedIntegrationToProto } from './integration.convert.ts'
import { parseEnum, timestampFrom, toEtag, versionFrom } from './values.convert.ts'

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

/** An account with its integration. The records have no credentials. @param webhooks absent: left out */
export function integratedAccountToProto(
  account: WithWholeContext<IntegratedAccount>,
  webhooks?: WebhookOverview,
): MessageInitShape<typeof IntegratedAccountSchema> {
  return {
    id: account.id,
    tenantId: account.tenantId,
    environmentIntegrationId: account.environmentIntegrationId,
    context: structFrom(account.context),
    status: account.status,
    lastError: account.lastError,
    lastActionResult: structFrom(account.lastActionResult),
    createdAt: timestampFrom(account.createdAt),
    updatedAt: timestampFrom(account.updatedAt),
    isSandbox: account.isSandbox,
    authenticationMethod: account.authenticationMethod,
    credential: account.credential,
    region: account.region,
    environmentId: account.environmentId,
    integration: embeddedIntegrationToProto(account.integration),
    objectStoreContextFields: [...account.objectStoreContextFields],
    contextErrors: [...account.contextErrors].map(([key, { reason, publicMessage }]) => ({
      key,
      reason,
      message: publicMessage,
    })),
    etag: toEtag(account.version),
    lastForbiddenError:
      account.lastForbiddenError === null ? undefined : forbiddenErrorToProto(account.lastForbiddenError),
    reauthorizationDueAt:
      account.reauthorizationDueAt === null ? undefined : timestampFrom(account.reauthorizationDueAt),
    externalId: account.externalId ?? '',
    termsUrl: account.termsUrl,
    termsAcceptedAt: account.termsAcceptedAt === null ? undefined : timestampFrom(account.termsAcceptedAt),
    nextAttemptAt: account.nextAttemptAt === null ? undefined : timestampFrom(account.nextAttemptAt),
    webhookSubscriptions: (webhooks?.subscriptions ?? []).map(subscriptionToProto),
    webhookActivity: webhooks?.activity === undefined ? undefined : activityToProto(webhooks.activity),
  }
}

function subscriptionToProto({
  event,
  status,
  externalId,
  expiresAt,
  nextAttemptAt,
  error,
  failedAt,
}: WebhookOverview['subscriptions'][number]): MessageInitShape<typeof WebhookSubscriptionSchema> {
  const time = (date: Date | null) => (date === null ? undefined : timestampFrom(date))
  return {
    event,
    status,
    externalId: externalId === null ? '' : typeof externalId === 'string' ? externalId : JSON.stringify(externalId),
    expiresAt: time(expiresAt),
    nextAttemptAt: time(nextAttemptAt),
    lastError: error,
    failedAt: time(failedAt),
  }
}

function activityToProto({
  lastInboundAt,
  inboundCount,
  usualGapSeconds,
  silentSince,
}: NonNullable<WebhookOverview['activity']>): MessageInitShape<typeof WebhookActivitySchema> {
  return {
    lastInboundAt: timestampFrom(lastInboundAt),
    inboundCount: Math.min(inboundCount, INT32_MAX),
    usualGapSeconds: Math.min(Math.round(usualGapSeconds), INT32_MAX),
    silentSince: silentSince === null ? undefined : timestampFrom(silentSince),
  }
}

function forbiddenErrorToProto({ resource, method, occurred_at }: ForbiddenError) {
  return { resource, method, occurredAt: timestampFrom(new Date(occurred_at)) }
}

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
export function historyEntryToProto(
  entry: AccountHistoryRecord,
): MessageInitShape<typeof IntegratedAccountHistoryEntrySchema> {
  return {
    fromStatus: entry.fromStatus ?? undefined,
    toStatus: entry.toStatus,
    cause: entry.cause,
    lastError: entry.lastError,
    occurredAt: timestampFrom(entry.occurredAt),
  }
}
