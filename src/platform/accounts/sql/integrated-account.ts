import type { AuthenticationMethod } from '../../../engine/formats/index.ts'
import {
  type Db,
  jsonb,
  newestFirst,
  query,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { Region } from '../../../foundation/queue/index.ts'
import {
  type EncryptedSecret,
  type SecretsColumn,
  secretsFromColumn,
  secretsSql,
} from '../../../foundation/secrets/index.ts'
import type { DefinitionVersions } from '../../integrations/sql/installations.ts'

/** Names an account. */
export interface AccountRef {
  readonly environmentId: string
  readonly id: string
}

/** Whether an account works, and if not why. */
export type AccountStatus = 'active' | 'connecting' | 'post_install_error' | 'validation_error' | 'needs_reauth'

/** A connected account as stored; its credentials are rows of "secret". */
export interface IntegratedAccountRecord {
  readonly id: string
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly tenantId: string
  readonly authenticationMethod: AuthenticationMethod
  /** Key of the definition's `credentials` by which it is connected. */
  readonly credential: string
  readonly context: JsonObject
  readonly status: AccountStatus
  /** Empty when there is none. */
  readonly lastError: string
  /** Since when calls are answered with 401 and none has succeeded; null: none was since the last success or new credentials. */
  readonly unauthorizedSince: Date | null
  readonly lastActionResult: JsonObject
  readonly lastForbiddenError: ForbiddenError | null
  /** When the steps of a connecting account are tried next; null while they run and in any other status. */
  readonly nextAttemptAt: Date | null
  /** Id that the third party gives the account; null: unknown. */
  readonly externalId: string | null
  /** When the customer has to connect the account again at the latest; null: never, as far as is known. */
  readonly reauthorizationDueAt: Date | null
  /** Address of the terms of service that the customer accepted when it was last connected on the connect page; empty: none. */
  readonly termsUrl: string
  readonly termsAcceptedAt: Date | null
  readonly isSandbox: boolean
  readonly region: Region
  readonly objectStoreContextFields: readonly string[]
  /** Version of the installation with which the credentials were entered: they are for its hosts. */
  readonly enteredVersion: number
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
  /** Whether there is anything to know about its webhooks (`readWebhookOverview`); absent where that was not looked up. */
  readonly hasWebhooks?: boolean | undefined
}

/** The last 403 of the third party; it does not change the status. */
export interface ForbiddenError {
  /** Empty for a call by path. */
  readonly resource: string
  readonly method: string
  /** RFC 3339. */
  readonly occurred_at: string
}

/** An account with its integration and installation, as far as loading their definition needs. */
export type AccountWithDefinition = IntegratedAccountRecord & DefinitionVersions

/** An account to be stored. */
export type NewIntegratedAccount = Omit<
  IntegratedAccountRecord,
  | 'lastError'
  | 'unauthorizedSince'
  | 'lastActionResult'
  | 'lastForbiddenError'
  | 'nextAttemptAt'
  | 'externalId'
  | 'reauthorizationDueAt'
  | 'createdAt'
  | 'updatedAt'
  | 'version'
  | 'hasWebhooks'
>

/** Which rows to list; an undefined field does not restrict. */
export interface AccountRowFilter {
  readonly tenantId?: string | undefined
  readonly status?: AccountStatus | undefined
  readonly environmentIntegrationId?: string | undefined
  readonly credential?: string | undefined
  /** Any of these installations. */
  readonly installationIds?: readonly string[] | undefined
  readonly isSandbox?: boolean | undefined
  readonly region?: Region | undefined
}

/** Fields that change; an absent one keeps its value. */
export interface AccountPatch {
  readonly tenantId?: string | undefined
  readonly authenticationMethod?: AuthenticationMethod
  readonly credential?: string
  readonly context?: ContextPatch | undefined
  readonly enteredVersion?: number
  /** The version to change; absent: any. */
  readonly version?: number | undefined
}

/** Keys to set and to remove; the others keep their values. */
export interface ContextPatch {
  readonly keys: JsonObject
  readonly removed: readonly string[]
}

/** Fields of `IntegratedAccountEventPayload` that are not of the account: few events have them. */
export const ACCOUNT_DETAIL_FIELDS = ['truncated_fields', 'webhook_subscription'] as const

/** SQL: the columns of an `IntegratedAccountRecord`, of `account`. */
export const COLUMNS = `account.id, account.environment_id,
  account.environment_integration_id, account.tenant_id, account.authentication_method,
  coalesce(account.credential, account.authentication_method) as credential, account.context, account.status,
  account.last_error, account.unauthorized_since, account.last_action_result, account.last_forbidden_error,
  case when account.status = 'connecting' and account.connecting_lease_id is null
    then account.connecting_due_at end as next_attempt_at,
  account.external_id, account.reauthorization_due_at, account.terms_url, account.terms_accepted_at,
  account.is_sandbox, account.region, account.object_store_context_fields, account.entered_version,
  account.created_at, account.updated_at, account.version`
/** SQL: those of its `DefinitionVersions`, of `INSTALLATION`. */
export const VERSIONS = `integration.id as integration_id, integration.name as integration_name,
  integration.version as integration_version, installation.version as installation_version,
  installation.is_enabled`
/** SQL: `hasWebhooks` of `account`. Few accounts have any: to look costs a tenth of a statement that reads them. */
export const HAS_WEBHOOKS = `exists (select from webhook_subscription subscription
    where subscription.environment_id = account.environment_id and subscription.integrated_account_id = account.id)
  or exists (select from webhook_activity activity
    where activity.environment_id = account.environment_id and activity.integrated_account_id = account.id) as has_webhooks`
/** SQL: the installations with their integrations. */
export const INSTALLATION =
  'environment_integration installation join integration on integration.id = installation.integration_id'
/** SQL: the condition of a join of `account` and `INSTALLATION`. */
export const OF_ACCOUNT = `installation.environment_id = account.environment_id
  and installation.id = account.environment_integration_id and not installation.is_hidden`

/**
 * SQL: whether no deletion goes on of the account that a row refers to. A scalar subquery, because a join may be planned as one
 * with all accounts. Uses primary keys.
 *
 * @param column of `table` (or its alias), which has `environment_id` too
 */
export function isKeptSql(table: string, column: string): string {
  return `coalesce((select false from integrated_account account
    join environment_integration installation on installation.environment_id = account.environment_id
      and installation.id = account.environment_integration_id and installation.is_hidden
    where account.environment_id = ${table}.environment_id and account.id = ${table}.${column}), true)`
}

export async function insertIntegratedAccount(tx: Db, account: NewIntegratedAccount): Promise<void> {
  await tx('integrated_account').insert({
    environment_id: account.environmentId,
    id: account.id,
    environment_integration_id: account.environmentIntegrationId,
    tenant_id: account.tenantId,
    authentication_method: account.authenticationMethod,
    credential: account.credential,
    context: jsonb(account.context),
    status: account.status,
    is_sandbox: account.isSandbox,
    region: account.region,
    object_store_context_fields: account.objectStoreContextFields,
    entered_version: account.enteredVersion,
    terms_url: account.termsUrl,
    terms_accepted_at: account.termsAcceptedAt,
  })
}

// Texts of statements are constants: one that is put together for each call is hashed for each call.
const FIND = `select ${COLUMNS}, ${VERSIONS}, ${HAS_WEBHOOKS} from integrated_account account join (${INSTALLATION}) on ${OF_ACCOUNT}
     where account.environment_id = :environmentId and account.id = :id`

/** Uses primary keys. */
export async function findIntegratedAccount(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<AccountWithDefinition | undefined> {
  return await queryOne(tx, FIND, { environmentId, id })
}

const FIND_WITH_SECRETS = `select ${COLUMNS}, ${VERSIONS},
    ${secretsSql('integrated_account', 'account')} as secrets
  from unnest(:environmentIds::uuid[], :ids::uuid[]) as wanted (environment_id, id)
  join integrated_account account on account.environment_id = wanted.environment_id and account.id = wanted.id
  join (${INSTALLATION}) on ${OF_ACCOUNT}`

/** An account with its encrypted secrets. */
export interface AccountWithSecrets {
  readonly account: AccountWithDefinition
  readonly secrets: readonly EncryptedSecret[]
}

/** The existing ones of the accounts, in any order and of any environments, in one statement. Uses primary keys. */
export async function findAccountsWithSecrets(
  tx: Db,
  wanted: readonly AccountRef[],
): Promise<readonly AccountWithSecrets[]> {
  const found = await query<AccountWithDefinition & { readonly secrets: SecretsColumn }>(tx, FIND_WITH_SECRETS, {
    environmentIds: wanted.map(({ environmentId }) => environmentId),
    ids: wanted.map(({ id }) => id),
  })
  return found.map(({ secrets, ...account }) => ({ account, secrets: secretsFromColumn(secrets) }))
}

/**
 * At most `limit` accounts of the environment below the id `before`, newest first. Uses the primary key, or
 * integrated_account_of_tenant, _of_installation or, for rare values of the other filters, _of_kind; the text names only the
 * filters given, so that the planner sees which.
 */
export async function selectIntegratedAccounts(
  tx: Db,
  environmentId: string,
  filter: AccountRowFilter,
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountWithDefinition[]> {
  const equal = {
    environment_id: environmentId,
    tenant_id: filter.tenantId,
    status: filter.status,
    environment_integration_id: filter.environmentIntegrationId,
    is_sandbox: filter.isSandbox,
    region: filter.region,
  }
  const accounts = tx(tx.raw(`integrated_account account join (${INSTALLATION}) on ${OF_ACCOUNT}`))
  for (const [column, value] of Object.entries(equal))
    if (value !== undefined) accounts.where(`account.${column}`, value)
  if (filter.installationIds !== undefined)
    accounts.whereIn('account.environment_integration_id', filter.installationIds)
  if (filter.credential !== undefined)
    accounts.whereRaw('coalesce(account.credential, account.authentication_method) = ?', [filter.credential])
  if (before !== undefined) accounts.where('account.id', '<', before)
  return await accounts
    .select(tx.raw(`${COLUMNS}, ${VERSIONS}`))
    .orderBy('account.id', 'desc')
    .limit(limit)
}

/** SQL: an account that waits for a choice of the customer is tried as soon as its context changes. */
export const RETRY_ACTIVATION = `connecting_due_at = case
         when account.status = 'connecting' and account.connecting_lease_id is null then date_trunc('milliseconds', now())
         else account.connecting_due_at end`

/** SQL: the update of an account's row. Keys of the context that live in the object store are left out. */
const UPDATE = `update integrated_account account set
       tenant_id = coalesce(:tenantId, account.tenant_id),
       authentication_method = coalesce(:authenticationMethod, account.authentication_method),
       credential = coalesce(:credential, account.credential),
       entered_version = coalesce(:enteredVersion, account.entered_version),
       context = coalesce((account.context || :contextKeys::jsonb) - :removedKeys::text[] - array(
         select unnest(account.object_store_context_fields) intersect select unnest(:keyNames::text[])
       ), account.context),
       ${RETRY_ACTIVATION}, updated_at = now(), version = account.version + 1
     from ${INSTALLATION}
     where account.environment_id = :environmentId and account.id = :id
       and account.version = coalesce(:version, account.version) and ${OF_ACCOUNT}
       and not exists (select from secret where owner_id = account.environment_id
         and subject_type = 'integrated_account' and subject_id = account.id and secret.name = any(:keyNames))
     returning ${COLUMNS}, ${VERSIONS}`

function updateParameters(
  { environmentId, id }: AccountRef,
  { tenantId, authenticationMethod, credential, enteredVersion, context, version }: AccountPatch,
) {
  return {
    tenantId: tenantId ?? null,
    authenticationMethod: authenticationMethod ?? null,
    credential: credential ?? null,
    enteredVersion: enteredVersion ?? null,
    contextKeys: context === undefined ? null : jsonb(context.keys),
    removedKeys: context?.removed ?? [],
    environmentId,
    id,
    version: version ?? null,
    keyNames: Object.keys(context?.keys ?? {}),
  }
}

/**
 * Changes tenant, method and context in one statement. The merge of the context is part of it, so that concurrent updates of different
 * keys are both kept. Uses primary keys.
 *
 * Keys of the context that live in the object store are left out: `updateAccount` stores them.
 *
 * `undefined` when there is no such account, its version is not the given one, or a context key to set is the name of one
 * of its secrets: the caller finds out which.
 */
export async function updateIntegratedAccountRow(
  tx: Db,
  environmentId: string,
  id: string,
  patch: AccountPatch,
): Promise<AccountWithDefinition | undefined> {
  return await queryOne(tx, UPDATE, updateParameters({ environmentId, id }, patch))
}

/**
 * Locks an account with its token, so that its credentials stay until the transaction ends. In the order of a token refresh:
 * the token's row first. Uses primary keys.
 *
 * @returns the version of the installation with which they were entered; `undefined` when there is no such account
 */
export async function lockAccountCredentials(tx: Tx, { environmentId, id }: AccountRef): Promise<number | undefined> {
  await tx('account_token')
    .where({ environment_id: environmentId, integrated_account_id: id })
    .forUpdate()
    .select(tx.raw('1'))
  const [locked] = await tx('integrated_account')
    .where({ environment_id: environmentId, id })
    .forUpdate()
    .select('entered_version')
  return locked?.enteredVersion
}

/**
 * Deletes an account with its history; returns whether it existed in this version. Uses the primary key.
 *
 * @throws the violation of a foreign key while triggers run for it
 */
export async function deleteIntegratedAccountRow(
  tx: Db,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const account = tx('integrated_account').where({ environment_id: environmentId, id })
  return (await account.modify(whereVersion, version).delete()) > 0
}

/** Ids of accounts of an installation. Uses integrated_account_of_installation. */
export async function listIntegratedAccountIds(
  tx: Db,
  environmentId: string,
  environmentIntegrationId: string,
  limit: number,
): Promise<readonly string[]> {
  return await tx('integrated_account')
    .where({ environment_id: environmentId, environment_integration_id: environmentIntegrationId })
    .limit(limit)
    .pluck('id')
}

/** Other accounts of the environment with the id that the third party gives an account. Uses integrated_account_external_id. */
export async function listAccountsByExternalId(
  tx: Db,
  { environmentId, id, externalId }: AccountRef & { readonly externalId: string },
  limit: number,
): Promise<readonly AccountWithDefinition[]> {
  return await query<AccountWithDefinition>(
    tx,
    `select ${COLUMNS}, ${VERSIONS} from integrated_account account join (${INSTALLATION}) on ${OF_ACCOUNT}
     where account.environment_id = :environmentId and account.external_id = :externalId and account.id <> :id limit :limit`,
    { environmentId, id, externalId, limit },
  )
}

/** An account whose credentials are for hosts to which nothing is sent any more. */
export type MovedAccount = AccountRef & Pick<IntegratedAccountRecord, 'region'>

/**
 * At most `limit` accounts of an installation below the id `before`, newest first, whose credentials were entered with an earlier
 * version. Uses integrated_account_of_installation.
 */
export async function listMovedAccounts(
  tx: Db,
  { environmentId, environmentIntegrationId, version }: InstallationVersion,
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly MovedAccount[]> {
  const accounts = tx('integrated_account')
    .where({ environment_id: environmentId, environment_integration_id: environmentIntegrationId })
    .andWhere('entered_version', '<', version)
  return await accounts.modify(newestFirst, { before, limit }).select('environment_id', 'id', 'region')
}

/** An installation at one of its versions. */
export interface InstallationVersion {
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly version: number
}
