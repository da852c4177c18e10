import { LRUCache } from 'lru-cache'
import { etagMismatch, notFound } from '../../foundation/base/index.ts'
import { type Database, type Db, mapForeignKeyToInUse, type Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { IntegrationCache } from '../integrations/definition-cache.ts'
import type { AccountCascade } from '../integrations/delete-installation.ts'
import { listInstallationIds } from '../integrations/sql/installations.ts'
import { findIntegrations, type IntegrationRecord } from '../integrations/sql/integrations.ts'
import type { EnvironmentScope } from '../tenancy/sql/environments.ts'
import { appendEventOf } from './account-events.ts'
import { scheduleRemoval } from './account-remover.ts'
import { assertNoReservedKeys, contextPatchFrom, findReservedKeys } from './context.ts'
import { assertContextRules, type ContextWriter, namesWithRules } from './context-rules.ts'
import { findCredential } from './credentials.ts'
import type { AccountDependencies } from './dependencies.ts'
import { lockAccount } from './load-account.ts'
import { type AccountHistoryRecord, listAccountHistory } from './sql/account-history.ts'
import {
  type AccountRef,
  type AccountRowFilter,
  type AccountWithDefinition,
  deleteIntegratedAccountRow,
  findIntegratedAccount,
  type IntegratedAccountRecord,
  listIntegratedAccountIds,
  selectIntegratedAccounts,
} from './sql/integrated-account.ts'
import { type DefinitionVersionsOfAccount, updateWithEvent } from './sql/update-with-event.ts'
import { updateAccount } from './stored-context.ts'
import { accountSecretRef } from './stored-credentials.ts'

/** The environment of a request. */
export type EnvironmentRef = Pick<EnvironmentScope, 'environmentId'>

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getIntegratedAccount(
  { integrations }: Pick<AccountDependencies, 'integrations'>,
  tx: Db,
  scope: EnvironmentRef,
  id: string,
): Promise<IntegratedAccount> {
  return await withIntegration(integrations, tx, await getAccount(tx, scope, id))
}

/** Which accounts to list; an undefined field does not restrict. */
export interface AccountFilter extends Omit<AccountRowFilter, 'installationIds'> {
  readonly integrationName?: string | undefined
}

/**
 * At most `limit` accounts of the environment below the id `before`, newest first; none when no integration of the name is
 * installed.
 *
 * @param page.view `basic` leaves `integration.config` undefined
 */
export async function listIntegratedAccounts(
  tx: Db,
  { environmentId }: EnvironmentRef,
  { integrationName, ...filter }: AccountFilter,
  page: { readonly before: string | undefined; readonly limit: number; readonly view: 'basic' | 'full' },
): Promise<readonly IntegratedAccount[]> {
  // Read first: as part of the statement they would hide from the planner that one installation is one range of the index.
  const installationIds =
    integrationName === undefined ? undefined : await listInstallationIds(tx, environmentId, integrationName)
  if (installationIds?.length === 0) return []
  const accounts = await selectIntegratedAccounts(tx, environmentId, { ...filter, installationIds }, page)
  return await withIntegrations(tx, accounts, page.view === 'full')
}

/** Changes to an account; what is undefined keeps its value. */
export interface IntegratedAccountChange {
  readonly id: string
  /** 1 to 255 characters. */
  readonly tenantId?: string | undefined
  /** Keys to change: one given replaces the stored one whole, null removes it, the others stay. */
  readonly context?: JsonObject | undefined
  /** The version the caller read; absent: any. */
  readonly version?: number | undefined
}

/** Who changes an account: `link` is the customer, anyone else the application. */
export interface WriterScope extends EnvironmentRef {
  readonly kind?: 'team' | 'environment' | 'link'
}

function writerOf({ kind }: WriterScope): ContextWriter {
  return kind === 'link' ? 'customer' : 'application'
}

/** Holds the rules of the account's definition on a change of its context. @throws Failure INVALID_FIELD, DEFINITION_INVALID */
export async function assertWrite(
  { definitions }: Pick<AccountDependencies, 'definitions'>,
  tx: Db,
  account: AccountWithDefinition,
  context: JsonObject,
  writer: ContextWriter,
): Promise<void> {
  if (Object.keys(context).length === 0) return
  const { plan } = await definitions.getVersion(tx, account)
  const connect = findCredential(plan.credentials, account)
  assertContextRules({ plan, connect, context, before: account.context, writer })
}

/** What changing an account takes. */
type UpdateDependencies = Pick<AccountDependencies, 'secrets' | 'definitions' | 'integrations' | 'contextValues'>

/**
 * `updateIntegratedAccount` in a transaction of its own, with one round trip, or two for a context, which must follow the account's
 * definition: the change and its event are one statement, unless a key of the context lives in the object store or the account is
 * very large.
 *
 * @throws Failure as `updateIntegratedAccount`
 */
export async function changeIntegratedAccount(
  deps: UpdateDependencies,
  database: Pick<Database, 'pool' | 'transaction'>,
  scope: WriterScope,
  change: IntegratedAccountChange,
): Promise<IntegratedAccount> {
  return (
    (await changeAtOnce(deps, database.pool, scope, change)) ??
    (await database.transaction((tx) => updateIntegratedAccount(deps, tx, scope, change)))
  )
}

/** The keys of an account's context that its definition has rules about, at its versions. */
interface GuardedKeys extends DefinitionVersionsOfAccount {
  readonly names: ReadonlySet<string>
}

const GUARDED_CACHED_MAX = 20_000
const caches = new WeakMap<object, LRUCache<string, GuardedKeys>>()

/** The guarded keys of accounts that were changed in this process: a key without rules is changed without reading the account. */
function guardedKeysOf(definitions: object): LRUCache<string, GuardedKeys> {
  const known = caches.get(definitions) ?? new LRUCache<string, GuardedKeys>({ max: GUARDED_CACHED_MAX })
  caches.set(definitions, known)
  return known
}

function keyOf({ environmentId, id }: AccountRef): string {
  return `${environmentId}|${id}`.toLowerCase()
}

/** `undefined` when nothing was changed: the transaction finds out why, or does it. */
async function changeAtOnce(
  deps: UpdateDependencies,
  tx: Db,
  scope: WriterScope,
  { id, tenantId, context = {}, version }: IntegratedAccountChange,
): Promise<IntegratedAccount | undefined> {
  if (findReservedKeys(context).length > 0) return undefined
  if (tenantId === undefined && Object.keys(context).length === 0) return undefined
  const ref = { environmentId: scope.environmentId, id }
  const guarded = guardedKeysOf(deps.definitions)
  const known = guarded.get(keyOf(ref))
  const isFree = known !== undefined && Object.keys(context).every((key) => !known.names.has(key))
  if (!isFree && Object.keys(context).length > 0) {
    const account = await findIntegratedAccount(tx, scope.environmentId, id)
    if (account === undefined) return undefined
    await assertWrite(deps, tx, account, context, writerOf(scope))
  }
  const patch = { tenantId, context: contextPatchFrom(context), version }
  const updated = await updateWithEvent(tx, ref, patch, isFree ? known : undefined)
  if (updated === undefined) return undefined
  if (!isFree) {
    const { plan } = await deps.definitions.getVersion(tx, updated)
    const { integrationVersion, installationVersion } = updated
    guarded.set(keyOf(ref), { integrationVersion, installationVersion, names: namesWithRules(plan) })
  }
  return await withIntegration(deps.integrations, tx, updated)
}

/**
 * Changes tenant and context; nothing given changes nothing. Status and credentials are untouched.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CONTEXT_KEY_RESERVED for a key that the runtime owns or that is the name
 * of one of the account's credentials, INVALID_FIELD as `assertContextRules`
 */
export async function updateIntegratedAccount(
  deps: UpdateDependencies,
  tx: Tx,
  scope: WriterScope,
  change: IntegratedAccountChange,
): Promise<IntegratedAccount> {
  const { id, tenantId, context = {}, version } = change
  assertNoReservedKeys(context)
  const hasContext = Object.keys(context).length > 0
  if (tenantId === undefined && !hasContext) return await readUnchanged(deps, tx, scope, change)
  if (hasContext) await assertWrite(deps, tx, await getAccount(tx, scope, id), context, writerOf(scope))
  const patch = { tenantId, context: hasContext ? contextPatchFrom(context) : undefined, version }
  const updated = await updateAccount(deps, tx, { ...scope, id }, patch)
  if (updated === undefined) return await explainFailedUpdate(deps, tx, scope, change)
  await appendEventOf(tx, updated, 'updated')
  return await withIntegration(deps.integrations, tx, updated)
}

/** At most `limit` changes of the account's status below the id `before`, newest first. @throws Failure RESOURCE_NOT_FOUND */
export async function listIntegratedAccountHistory(
  tx: Db,
  scope: EnvironmentRef,
  id: string,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await listAccountHistory(tx, await getAccount(tx, scope, id), page)
}

async function getAccount(tx: Db, { environmentId }: EnvironmentRef, id: string): Promise<AccountWithDefinition> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  return account
}

async function readUnchanged(
  deps: Pick<AccountDependencies, 'secrets' | 'integrations'>,
  tx: Db,
  scope: EnvironmentRef,
  { id, version }: IntegratedAccountChange,
): Promise<IntegratedAccount> {
  const account = await getIntegratedAccount(deps, tx, scope, id)
  if (version !== undefined && version !== account.version) throw etagMismatch('integrated_account', id)
  return account
}

/** Throws why the statement changed nothing. */
async function explainFailedUpdate(
  deps: Pick<AccountDependencies, 'secrets' | 'integrations'>,
  tx: Db,
  scope: EnvironmentRef,
  { id, version, context = {} }: IntegratedAccountChange,
): Promise<never> {
  const account = await getAccount(tx, scope, id)
  if (version === undefined || version === account.version)
    assertNoReservedKeys(context, Object.keys(await deps.secrets.get(tx, accountSecretRef(account))))
  // Changed between the statement and this read.
  throw etagMismatch('integrated_account', id)
}

/** An account with its integration, without the team and the installations of the integration. */
export interface IntegratedAccount extends IntegratedAccountRecord {
  readonly integration: IntegrationRecord
}

/** Adds the cached integration: the same object for every account of the same version. */
export async function withIntegration(
  integrations: IntegrationCache,
  tx: Db,
  account: AccountWithDefinition,
): Promise<IntegratedAccount> {
  const integration = await integrations.find(tx, account.integrationId, account.integrationVersion)
  return { ...account, integration: integration ?? integrationMissing(account.integrationId) }
}

/** Adds the integrations of a list, in one statement. */
export async function withIntegrations(
  tx: Db,
  accounts: readonly AccountWithDefinition[],
  withConfig: boolean,
): Promise<readonly IntegratedAccount[]> {
  if (accounts.length === 0) return []
  const ids = new Set(accounts.map(({ integrationId }) => integrationId))
  const found = await findIntegrations(tx, [...ids], withConfig)
  const byId = new Map(found.map((integration) => [integration.id, integration]))
  return accounts.map((account) => ({
    ...account,
    integration: byId.get(account.integrationId) ?? integrationMissing(account.integrationId),
  }))
}

function integrationMissing(integrationId: string): never {
  throw new Error(`the integration ${integrationId} of an account does not exist`)
}

const DELETE_BATCH_MAX = 500

/** What deleting accounts takes. */
type DeleteDependencies = Pick<
  AccountDependencies,
  'secrets' | 'contextValues' | 'definitions' | 'triggers' | 'subscriptions'
>

/**
 * Deletes an account and its credentials, with `force` its triggers too. Its subscriptions are deleted at the third party and
 * then its grant is revoked there, after the transaction, by a worker, unless `keepsGrant` is set or another account shares it.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has triggers and `force` is not set
 */
export async function deleteIntegratedAccount(
  deps: DeleteDependencies,
  tx: Tx,
  scope: EnvironmentRef,
  input: {
    readonly id: string
    readonly version?: number | undefined
    readonly force?: boolean
    readonly keepsGrant?: boolean
  },
): Promise<void> {
  const { environmentId } = scope
  const { id, version, force = false, keepsGrant = false } = input
  // Its token is read to be revoked: without the lock a refresh could put another one in its place. And nothing can be created for it.
  const account = await lockAccount(tx, { environmentId, id })
  if (force) await deps.triggers.deleteByAccount(tx, environmentId, id)
  await scheduleRemoval(deps, tx, account, keepsGrant)
  const why = 'triggers run for this account: delete them first, or set force to delete them with it'
  const deleteRow = () => deleteIntegratedAccountRow(tx, environmentId, id, version)
  if (!(await mapForeignKeyToInUse({ type: 'integrated_account', id, why }, deleteRow)))
    throw etagMismatch('integrated_account', id)
  await deps.secrets.remove(tx, accountSecretRef(account))
  if (account.objectStoreContextFields.length > 0) await deps.contextValues.remove(tx, account)
  await appendEventOf(tx, account, 'deleted')
}

/** What integrations ask of the accounts of their installations. */
export function createAccountCascade(deps: DeleteDependencies): AccountCascade {
  return {
    deleteByInstallation: deleteAccountsByInstallation.bind(undefined, deps),
    stopByInstallations: deps.triggers.stopByInstallations,
  }
}

/**
 * Deletes accounts of an installation with their triggers.
 *
 * @param limit how many at most; absent: all
 * @returns how many
 */
export async function deleteAccountsByInstallation(
  deps: DeleteDependencies,
  tx: Tx,
  environmentId: string,
  environmentIntegrationId: string,
  limit = Number.POSITIVE_INFINITY,
): Promise<number> {
  for (let deleted = 0; ; ) {
    const wanted = Math.min(DELETE_BATCH_MAX, limit - deleted)
    const ids = await listIntegratedAccountIds(tx, environmentId, environmentIntegrationId, wanted)
    for (const id of ids) await deleteIntegratedAccount(deps, tx, { environmentId }, { id, force: true })
    deleted += ids.length
    if (ids.length < wanted || deleted >= limit) return deleted
  }
}
