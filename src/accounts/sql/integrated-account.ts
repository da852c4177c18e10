import type { JsonObject } from '../../base/index.ts'
import { execute, jsonb, query, queryOne, type SqlValue, type Tx } from '../../database/index.ts'
import type { DefinitionVersions } from '../../integrations/index.ts'
import type { EncryptedSecret } from '../../secrets/index.ts'
import type { AccountRef } from './activation.ts'

/** Whether an account works, and if not why. */
export type AccountStatus = 'active' | 'connecting' | 'post_install_error' | 'validation_error' | 'needs_reauth'
/** How an account authenticates with the third party. */
export type AuthenticationMethod = 'oauth2' | 'api_key' | 'oauth2_client_credentials' | 'vendor_oauth'
/** Where an account's work takes place. */
export type Region = 'wnam' | 'enam' | 'apac' | 'eu'

/** A connected account as it is stored. Its credentials are secrets of their own. */
export interface IntegratedAccountRecord {
  readonly id: string
  readonly environmentId: string
  readonly environmentIntegrationId: string
  readonly tenantId: string
  readonly authenticationMethod: AuthenticationMethod
  readonly context: JsonObject
  readonly status: AccountStatus
  /** Empty when there is none. */
  readonly lastError: string
  readonly lastActionResult: JsonObject
  readonly lastForbiddenError: ForbiddenError | null
  /** When the steps of a connecting account are tried next; null while they run and in any other status. */
  readonly nextAttemptAt: Date | null
  readonly isSandbox: boolean
  readonly region: Region
  readonly objectStoreContextFields: readonly string[]
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** The last time the third party said that the account may not (403); the status is not touched by it. */
export interface ForbiddenError {
  /** Empty for a call by path. */
  readonly resource: string
  readonly method: string
  /** RFC 3339. */
  readonly occurred_at: string
}

/** An account and the versions of what it is an account of. */
export type AccountWithDefinition = IntegratedAccountRecord & DefinitionVersions

/** An account to be stored. */
export type NewIntegratedAccount = Omit<
  IntegratedAccountRecord,
  'lastError' | 'lastActionResult' | 'lastForbiddenError' | 'nextAttemptAt' | 'createdAt' | 'updatedAt' | 'version'
>

/** Which accounts to list; what is undefined does not restrict. */
export interface AccountFilter {
  readonly tenantId?: string | undefined
  readonly status?: AccountStatus | undefined
  readonly environmentIntegrationId?: string | undefined
  readonly isSandbox?: boolean | undefined
  readonly region?: Region | undefined
}

/** What an update changes. */
export interface AccountPatch {
  readonly tenantId?: string | undefined
  readonly context?: ContextPatch | undefined
  /** The version to change; absent: any. */
  readonly version?: number | undefined
}

/** Keys to set and to remove; the others keep their values. */
export interface ContextPatch {
  readonly keys: JsonObject
  readonly removed: readonly string[]
}

/** One step of the status table: the status it starts from and the one it leads to. */
export interface StatusTransition {
  readonly from: AccountStatus
  readonly to: AccountStatus
}

const COLUMNS = `account.id, account.environment_id as "environmentId",
  account.environment_integration_id as "environmentIntegrationId", account.tenant_id as "tenantId",
  account.authentication_method as "authenticationMethod", account.context, account.status,
  account.last_error as "lastError", account.last_action_result as "lastActionResult",
  account.last_forbidden_error as "lastForbiddenError",
  case when account.status = 'connecting' and account.connecting_lease_id is null
    then account.connecting_due_at end as "nextAttemptAt",
  account.is_sandbox as "isSandbox", account.region,
  account.object_store_context_fields as "objectStoreContextFields",
  account.created_at as "createdAt", account.updated_at as "updatedAt", account.version`
const VERSIONS = `integration.id as "integrationId", integration.name as "integrationName",
  integration.version as "integrationVersion", installation.version as "installationVersion",
  installation.is_enabled as "isEnabled"`
const INSTALLATION =
  'environment_integration installation join integration on integration.id = installation.integration_id'
const OF_ACCOUNT = `installation.environment_id = account.environment_id
  and installation.id = account.environment_integration_id`

/** Stores an account. */
export async function insertIntegratedAccount(tx: Tx, account: NewIntegratedAccount): Promise<IntegratedAccountRecord> {
  const inserted = await queryOne<IntegratedAccountRecord>(
    tx,
    `insert into integrated_account as account (environment_id, id, environment_integration_id, tenant_id,
       authentication_method, context, status, is_sandbox, region, object_store_context_fields)
     values (?, ?, ?, ?, ?, ?::jsonb, ?, ?, ?, ?) returning ${COLUMNS}`,
    [
      account.environmentId,
      account.id,
      account.environmentIntegrationId,
      account.tenantId,
      account.authenticationMethod,
      jsonb(account.context),
      account.status,
      account.isSandbox,
      account.region,
      account.objectStoreContextFields,
    ],
  )
  if (inserted === undefined) throw new Error('an insert returned no row')
  return inserted
}

/** One account, and what it is an account of. Rides on primary keys. */
export async function findIntegratedAccount(
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<AccountWithDefinition | undefined> {
  return await queryOne(
    tx,
    `select ${COLUMNS}, ${VERSIONS} from integrated_account account join (${INSTALLATION}) on ${OF_ACCOUNT}
     where account.environment_id = ? and account.id = ?`,
    [environmentId, id],
  )
}

/** An account with what it is an account of, and its secrets as they are stored, encrypted. */
export interface AccountWithSecrets {
  readonly account: AccountWithDefinition
  readonly secrets: readonly EncryptedSecret[]
}

/**
 * Those of the accounts that there are, of whatever environments, in any order: one statement for any number of them. Rides
 * on primary keys.
 */
export async function findAccountsWithSecrets(
  tx: Tx,
  wanted: readonly AccountRef[],
): Promise<readonly AccountWithSecrets[]> {
  const found = await query<AccountWithDefinition & { readonly secrets: readonly EncodedSecret[] | null }>(
    tx,
    `select ${COLUMNS}, ${VERSIONS}, held.secrets
     from unnest(?::uuid[], ?::uuid[]) as wanted (environment_id, id)
     join integrated_account account on account.environment_id = wanted.environment_id and account.id = wanted.id
     join (${INSTALLATION}) on ${OF_ACCOUNT}
     left join lateral (
       select json_agg(json_build_object('name', name, 'dataKeyId', data_key_id, 'ciphertext', encode(sealed, 'base64'))) as secrets
       from secret where owner_id = account.environment_id and subject_type = 'integrated_account' and subject_id = account.id
     ) held on true`,
    [wanted.map(({ environmentId }) => environmentId), wanted.map(({ id }) => id)],
  )
  return found.map(({ secrets, ...account }) => ({ account, secrets: (secrets ?? []).map(secretFromRow) }))
}

interface EncodedSecret extends Omit<EncryptedSecret, 'ciphertext'> {
  readonly ciphertext: string
}

function secretFromRow({ ciphertext, ...rest }: EncodedSecret): EncryptedSecret {
  return { ...rest, ciphertext: Buffer.from(ciphertext, 'base64') }
}

/**
 * Accounts of the environment below `before` (all when undefined), newest first.
 *
 * Rides on the primary key, or on integrated_account_of_tenant or _of_installation, backwards; the statement text names
 * only the filters given, so that the planner sees which.
 */
export async function selectIntegratedAccounts(
  tx: Tx,
  environmentId: string,
  filter: AccountFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountWithDefinition[]> {
  const restrictions: readonly (readonly [string, SqlValue | undefined])[] = [
    ['account.environment_id = ?', environmentId],
    ['account.id < ?', page.before],
    ['account.tenant_id = ?', filter.tenantId],
    ['account.status = ?', filter.status],
    ['account.environment_integration_id = ?', filter.environmentIntegrationId],
    ['account.is_sandbox = ?', filter.isSandbox],
    ['account.region = ?', filter.region],
  ]
  const given = restrictions.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  return await query(
    tx,
    `select ${COLUMNS}, ${VERSIONS} from integrated_account account join (${INSTALLATION}) on ${OF_ACCOUNT}
     where ${given.map(({ sql }) => sql).join(' and ')} order by account.id desc limit ?`,
    [...given.map(({ value }) => value), page.limit],
  )
}

/**
 * Changes tenant and context in one statement, the merge included, so that two updates of different keys never lose one.
 *
 * `undefined` when there is no such account, its version is not the given one, or a context key to set is the name of one
 * of its secrets: the caller finds out which.
 */
export async function updateIntegratedAccountRow(
  tx: Tx,
  environmentId: string,
  id: string,
  patch: AccountPatch,
): Promise<AccountWithDefinition | undefined> {
  const { tenantId, context, version } = patch
  return await queryOne(
    tx,
    `update integrated_account account set
       tenant_id = coalesce(?, account.tenant_id),
       context = coalesce((account.context || ?::jsonb) - ?::text[], account.context),
       updated_at = now(), version = account.version + 1
     from ${INSTALLATION}
     where account.environment_id = ? and account.id = ? and account.version = coalesce(?, account.version)
       and ${OF_ACCOUNT}
       and not exists (select from secret where owner_id = account.environment_id
         and subject_type = 'integrated_account' and subject_id = account.id and secret.name = any(?))
     returning ${COLUMNS}, ${VERSIONS}`,
    [
      tenantId ?? null,
      context === undefined ? null : jsonb(context.keys),
      context?.removed ?? [],
      environmentId,
      id,
      version ?? null,
      Object.keys(context?.keys ?? {}),
    ],
  )
}

/**
 * Takes the step that starts from the account's present status, if one of the given does, and writes it to the history:
 * one statement, so that of two that race one takes the step and the other finds it taken. A step to `connecting` begins
 * anew: results of earlier steps are gone, and so is the lease of whoever was connecting the account.
 *
 * Returns the statuses before and after (null when no step starts there), `undefined` when there is no such account.
 */
export async function transitionAccountStatus(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  transitions: readonly StatusTransition[],
  entry: { readonly cause: string; readonly lastError: string },
): Promise<{ readonly from: AccountStatus; readonly to: AccountStatus | null } | undefined> {
  return await queryOne(
    tx,
    `with present as (
       select status from integrated_account where environment_id = ? and id = ? for update
     ), step as (
       select from_status, to_status
       from present join unnest(?::text[], ?::text[]) as steps (from_status, to_status) on from_status = present.status
     ), changed as (
       update integrated_account set status = to_status, last_error = ?, updated_at = now(), version = version + 1,
         last_action_result = case to_status when 'connecting' then '{}' else last_action_result end,
         connecting_due_at = now(), connecting_lease_id = null, connecting_tries = 0
       from step where environment_id = ? and id = ? returning status, version
     ), written as (
       insert into integrated_account_history
         (environment_id, integrated_account_id, id, from_status, to_status, cause, last_error)
       select ?, ?, ${historyIdSql('version')}, from_status, to_status, ?, ? from step, changed
     )
     select present.status as "from", changed.status as "to"
     from present left join changed on true`,
    [
      account.environmentId,
      account.id,
      transitions.map(({ from }) => from),
      transitions.map(({ to }) => to),
      entry.lastError,
      account.environmentId,
      account.id,
      account.environmentId,
      account.id,
      entry.cause,
      entry.lastError,
    ],
  )
}

/**
 * Keeps the last 403. Counts as no change of the account: its etag stays. The same one again within `quietMs` writes nothing,
 * so that a sync that is refused everywhere does not write its account a thousand times.
 */
export async function storeForbiddenError(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  error: ForbiddenError,
  dedupWindowMs: number,
): Promise<void> {
  await execute(
    tx,
    `update integrated_account set last_forbidden_error = ?::jsonb
     where environment_id = ? and id = ? and (last_forbidden_error is null
       or last_forbidden_error ->> 'resource' <> ? or last_forbidden_error ->> 'method' <> ?
       or (last_forbidden_error ->> 'occurred_at')::timestamptz < ?::timestamptz - ? * interval '1 millisecond')`,
    [
      jsonb({ ...error }),
      account.environmentId,
      account.id,
      error.resource,
      error.method,
      error.occurred_at,
      dedupWindowMs,
    ],
  )
}

/**
 * Deletes an account with its history; returns whether the environment had it in the given version.
 *
 * The foreign keys of whatever runs for it refuse while there is any.
 */
export async function deleteIntegratedAccountRow(
  tx: Tx,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const sql = 'delete from integrated_account where environment_id = ? and id = ? and version = coalesce(?, version)'
  return (await execute(tx, sql, [environmentId, id, version ?? null])) > 0
}

/** Ids of accounts of an installation. Rides on integrated_account_of_installation. */
export async function listIntegratedAccountIds(
  tx: Tx,
  environmentId: string,
  environmentIntegrationId: string,
  limit: number,
): Promise<readonly string[]> {
  const found = await query<{ id: string }>(
    tx,
    'select id from integrated_account where environment_id = ? and environment_integration_id = ? limit ?',
    [environmentId, environmentIntegrationId, limit],
  )
  return found.map(({ id }) => id)
}

/** One change of an account's status, as it is stored; never altered. */
export interface AccountHistoryRecord {
  /** Orders the entries of one account; no uuid of the whole installation. */
  readonly id: string
  /** Null on the first entry. */
  readonly fromStatus: AccountStatus | null
  readonly toStatus: AccountStatus
  readonly cause: string
  /** The account's error after the change; empty when there is none. */
  readonly lastError: string
  readonly occurredAt: Date
}

/**
 * The SQL of an entry's id: the version of the account after the change. The lock on the account's row orders versions,
 * which clocks of several processes, and of one within a millisecond, do not.
 */
function historyIdSql(version: string): string {
  return `lpad(to_hex(${version}), 32, '0')::uuid`
}

/** Stores one entry under the account's version after the change; 0 for what came before the account was stored. */
export async function insertAccountHistory(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  entry: Pick<AccountHistoryRecord, 'fromStatus' | 'toStatus' | 'cause'> & { readonly version: number },
): Promise<void> {
  await execute(
    tx,
    `insert into integrated_account_history (environment_id, integrated_account_id, id, from_status, to_status, cause)
     values (?, ?, ${historyIdSql('?::integer')}, ?, ?, ?)`,
    [account.environmentId, account.id, entry.version, entry.fromStatus, entry.toStatus, entry.cause],
  )
}

/** Entries of the account below `before` (all when undefined), newest first. Rides on the primary key backwards. */
export async function listAccountHistory(
  tx: Tx,
  account: { readonly environmentId: string; readonly id: string },
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await query(
    tx,
    `select id, from_status as "fromStatus", to_status as "toStatus", cause, last_error as "lastError",
       occurred_at as "occurredAt"
     from integrated_account_history
     where environment_id = ? and integrated_account_id = ? and (?::uuid is null or id < ?)
     order by id desc limit ?`,
    [account.environmentId, account.id, page.before ?? null, page.before ?? null, page.limit],
  )
}
