import { etagMismatch, type JsonObject, notFound } from '../base/index.ts'
import { mapForeignKeyToInUse, type Tx } from '../database/index.ts'
import { findIntegrations, type IntegrationCache, type IntegrationRecord } from '../integrations/index.ts'
import type { SecretStore } from '../secrets/index.ts'
import type { EnvironmentScope } from '../tenancy/index.ts'
import { assertNoReservedKeys, patchFrom } from './context.ts'
import {
  type AccountFilter,
  type AccountHistoryRecord,
  type AccountWithDefinition,
  deleteIntegratedAccountRow as deleteRow,
  findIntegratedAccount,
  type IntegratedAccountRecord,
  listAccountHistory,
  listIntegratedAccountIds,
  selectIntegratedAccounts as listRows,
  updateIntegratedAccountRow as updateRow,
} from './sql/integrated-account.ts'
import { accountSecretRef } from './stored-credentials.ts'

/** What reading and changing accounts needs. */
export interface AccountDeps {
  readonly secrets: Pick<SecretStore, 'get'>
  readonly integrations: IntegrationCache
}

/** The environment that a call concerns; a `Scope` is one. */
export type EnvironmentRef = Pick<EnvironmentScope, 'environmentId'>

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getIntegratedAccount(
  { integrations }: Pick<AccountDeps, 'integrations'>,
  tx: Tx,
  scope: EnvironmentRef,
  id: string,
): Promise<IntegratedAccount> {
  return await withIntegration(integrations, tx, await getAccount(tx, scope, id))
}

/**
 * At most `limit` accounts of the environment below the id `before`, newest first.
 *
 * @param page.view `basic` leaves `integration.config` undefined
 */
export async function listIntegratedAccounts(
  tx: Tx,
  { environmentId }: EnvironmentRef,
  filter: AccountFilter,
  page: { readonly before: string | undefined; readonly limit: number; readonly view: 'basic' | 'full' },
): Promise<readonly IntegratedAccount[]> {
  return await withIntegrations(tx, await listRows(tx, environmentId, filter, page), page.view === 'full')
}

/** Changes to an account; what is undefined keeps its value. */
export interface IntegratedAccountChange {
  readonly id: string
  /** 1 to 255 characters. */
  readonly tenantId?: string | undefined
  /** Keys to change: one given replaces the stored one whole, null removes it, the others stay. */
  readonly context?: JsonObject | undefined
  /** The version the caller saw; absent: whatever is stored. */
  readonly version?: number | undefined
}

/**
 * Changes tenant and context in one statement; nothing given changes nothing. Status and credentials are untouched.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CONTEXT_KEY_RESERVED for a key that the runtime owns or that is the name
 * of one of the account's credentials
 */
export async function updateIntegratedAccount(
  deps: AccountDeps,
  tx: Tx,
  scope: EnvironmentRef,
  change: IntegratedAccountChange,
): Promise<IntegratedAccount> {
  const { id, tenantId, context = {}, version } = change
  assertNoReservedKeys(context)
  const { keys, removed } = patchFrom(context)
  const hasContext = Object.keys(context).length > 0
  if (tenantId === undefined && !hasContext) return await readUnchanged(deps, tx, scope, change)
  const patch = { tenantId, contextKeys: hasContext ? keys : undefined, removedContextKeys: removed, version }
  const updated = await updateRow(tx, scope.environmentId, id, patch)
  if (updated === undefined) return await explainFailedUpdate(deps, tx, scope, change)
  return await withIntegration(deps.integrations, tx, updated)
}

/** At most `limit` changes of the account's status below the id `before`, newest first. @throws Failure RESOURCE_NOT_FOUND */
export async function listIntegratedAccountHistory(
  tx: Tx,
  scope: EnvironmentRef,
  id: string,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly AccountHistoryRecord[]> {
  return await listAccountHistory(tx, await getAccount(tx, scope, id), page)
}

async function getAccount(tx: Tx, { environmentId }: EnvironmentRef, id: string): Promise<AccountWithDefinition> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  return account
}

async function readUnchanged(
  deps: AccountDeps,
  tx: Tx,
  scope: EnvironmentRef,
  { id, version }: IntegratedAccountChange,
): Promise<IntegratedAccount> {
  const account = await getIntegratedAccount(deps, tx, scope, id)
  if (version !== undefined && version !== account.version) throw etagMismatch('integrated_account', id)
  return account
}

/** Finds out why the statement changed nothing. */
async function explainFailedUpdate(
  deps: AccountDeps,
  tx: Tx,
  scope: EnvironmentRef,
  { id, version, context = {} }: IntegratedAccountChange,
): Promise<never> {
  const account = await getAccount(tx, scope, id)
  if (version === undefined || version === account.version)
    assertNoReservedKeys(context, Object.keys(await deps.secrets.get(tx, accountSecretRef(account))))
  // Changed between the statement and this look.
  throw etagMismatch('integrated_account', id)
}

/** An account with the integration it is of, without that one's team and installations. */
export interface IntegratedAccount extends IntegratedAccountRecord {
  readonly integration: IntegrationRecord
}

/** Adds the integration from memory: the same object for every account of the same version. */
export async function withIntegration(
  integrations: IntegrationCache,
  tx: Tx,
  account: AccountWithDefinition,
): Promise<IntegratedAccount> {
  const integration = await integrations.find(tx, account.integrationId, account.integrationVersion)
  return { ...account, integration: integration ?? integrationMissing(account.integrationId) }
}

/** Adds the integrations of a list, in one statement. */
export async function withIntegrations(
  tx: Tx,
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
  throw new Error(`no integration ${integrationId}, of which there is an account`)
}

/** Accounts that are removed by force per look. */
const DELETE_BATCH_SIZE = 500

/** Removes triggers, which belong to a room above this one. */
export interface AccountTriggers {
  /** Removes every trigger of the account with its schedule, and stops what runs for it. */
  deleteByAccount(tx: Tx, environmentId: string, integratedAccountId: string): Promise<void>
}

/** What removing accounts needs. */
export interface DeleteAccountDeps {
  readonly secrets: Pick<SecretStore, 'remove'>
  readonly triggers: AccountTriggers
}

/**
 * Disconnects an account and erases its credentials, and with `force` deletes its triggers. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH; RESOURCE_IN_USE while it has triggers and `force` is not set
 */
export async function deleteIntegratedAccount(
  deps: DeleteAccountDeps,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  input: { readonly id: string; readonly version?: number | undefined; readonly force?: boolean },
): Promise<void> {
  const { id, version, force = false } = input
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  if (force) await deps.triggers.deleteByAccount(tx, environmentId, id)
  const why = 'triggers run for this account: delete them first, or set force to delete them with it'
  const remove = () => deleteRow(tx, environmentId, id, version)
  if (!(await mapForeignKeyToInUse({ type: 'integrated_account', id, why }, remove)))
    throw etagMismatch('integrated_account', id)
  await deps.secrets.remove(tx, accountSecretRef(account))
}

/** Removes, by force, every account of an installation. `tx` is a transaction. */
export async function deleteAccountsByInstallation(
  deps: DeleteAccountDeps,
  tx: Tx,
  environmentId: string,
  environmentIntegrationId: string,
): Promise<void> {
  for (;;) {
    const ids = await listIntegratedAccountIds(tx, environmentId, environmentIntegrationId, DELETE_BATCH_SIZE)
    for (const id of ids) await deleteIntegratedAccount(deps, tx, { environmentId }, { id, force: true })
    if (ids.length < DELETE_BATCH_SIZE) return
  }
}
