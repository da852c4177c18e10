import { exceedsJsonSize, type JsonObject, notFound } from '../base/index.ts'
import type { Db } from '../database/index.ts'
import { appendEvents, type EventType } from '../events/index.ts'
import { type AccountRef, type AccountWithDefinition, findIntegratedAccount } from './sql/integrated-account.ts'
import { splitContext } from './stored-context.ts'

/** Longest context that an event repeats, in characters of JSON. */
const CONTEXT_LENGTH_MAX = 64 * 1024

/** An event about an account, without its subject. */
export type AccountEventName =
  Extract<EventType, `integrated_account:${string}`> extends `integrated_account:${infer Name}` ? Name : never

/**
 * Reads an account and records an event about it. `tx` is the transaction of the change.
 *
 * @param details further fields of the payload, in the names of the contract
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function appendAccountEvent(
  tx: Db,
  { environmentId, id }: AccountRef,
  name: Exclude<AccountEventName, 'deleted'>,
  details: JsonObject = {},
): Promise<void> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  await appendEventOf(tx, account, name, details)
}

/** Records an event about an account as it was just read; of a deleted one before. `tx` is the transaction of the change. */
export async function appendEventOf(
  tx: Db,
  account: AccountWithDefinition,
  name: AccountEventName,
  details: JsonObject = {},
): Promise<void> {
  const payload = name === 'deleted' ? identityPayload(account) : { ...accountEventPayload(account), ...details }
  const { environmentId, id } = account
  await appendEvents(tx, [
    { environmentId, type: `integrated_account:${name}`, subjectId: id, integratedAccountId: id, payload },
  ])
}

/** What tells a receiver which account it is: all that `deleted` contains. */
function identityPayload(account: AccountWithDefinition): JsonObject {
  return {
    id: account.id,
    environment_id: account.environmentId,
    environment_integration_id: account.environmentIntegrationId,
    integration: { id: account.integrationId, name: account.integrationName },
    tenant_id: account.tenantId,
  }
}

/**
 * The payload of all other events: the account in the names of the contract, times in RFC 3339, without credentials.
 *
 * `{id, environment_id, environment_integration_id, integration: {id, name}, tenant_id, authentication_method, credential, status,
 * last_error, last_action_result, last_forbidden_error, reauthorization_due_at, terms_url, terms_accepted_at, context, region, is_sandbox,
 * object_store_context_fields, created_at, updated_at}`. Context keys in the object store are left out, and a context of more
 * than 64 KiB is left out whole: read the account.
 */
export function accountEventPayload(account: AccountWithDefinition): JsonObject {
  const { inline: context } = splitContext(account, account.context)
  return {
    ...identityPayload(account),
    authentication_method: account.authenticationMethod,
    credential: account.credential,
    status: account.status,
    last_error: account.lastError,
    last_action_result: account.lastActionResult,
    last_forbidden_error: account.lastForbiddenError === null ? null : { ...account.lastForbiddenError },
    reauthorization_due_at: account.reauthorizationDueAt?.toISOString() ?? null,
    terms_url: account.termsUrl,
    terms_accepted_at: account.termsAcceptedAt?.toISOString() ?? null,
    ...(exceedsJsonSize(context, CONTEXT_LENGTH_MAX) ? {} : { context }),
    region: account.region,
    is_sandbox: account.isSandbox,
    object_store_context_fields: account.objectStoreContextFields,
    created_at: account.createdAt.toISOString(),
    updated_at: account.updatedAt.toISOString(),
  }
}
