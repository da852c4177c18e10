import { etagMismatch, type JsonObject, notFound } from '../base/index.ts'
import type { IntegrationCache } from '../integrations/index.ts'
import {
  type AccountFilter,
  type AccountHistoryRecord,
  type AccountWithDefinition,
  type EnvironmentScope,
  findIntegratedAccount,
  listAccountHistory,
  selectIntegratedAccounts as listRows,
  type SecretStore,
  type Tx,
  updateIntegratedAccountRow as updateRow,
} from '../storage/index.ts'
import { assertNoReservedKeys, patchFrom } from './context.ts'
import { type IntegratedAccount, withIntegration, withIntegrations } from './embedded.ts'
import { accountSecretRef } from './secret-ref.ts'

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
