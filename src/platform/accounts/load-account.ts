import { type CallCause, createRedaction, withCause } from '../../engine/proxy/index.ts'
import { accountNotActive, assertNever, Failure, MicroBatcher, notFound } from '../../foundation/base/index.ts'
import type { Database, Db, Pool, Tx } from '../../foundation/database/index.ts'
import { SECRET_MASK } from '../../foundation/redaction/index.ts'
import type { EffectiveDefinition } from '../integrations/definition-cache.ts'
import type { AccountDependencies, AccountReader } from './dependencies.ts'
import { isMoved, type ResolvedAccount, resolveAccount } from './resolved-account.ts'
import { findEnabledAccounts } from './sql/account-state.ts'
import {
  type AccountRef,
  type AccountStatus,
  type AccountWithDefinition,
  findAccountsWithSecrets,
  findIntegratedAccount,
  lockAccountCredentials,
} from './sql/integrated-account.ts'
import { withContextForCall, withWholeContext } from './stored-context.ts'
import { accountSecretRef } from './stored-credentials.ts'

/**
 * What an account is loaded for. `call` allows one that needs reauthorisation too: a call that succeeds makes it active again
 * after a 401, not after a refused grant.
 * `sync` allows active accounts only, `activation` those that are connecting.
 */
export type LoadPurpose = 'call' | 'sync' | 'activation'

/** What requests through the account are sent for, unless its user says more. */
const CAUSES: Readonly<Record<LoadPurpose, CallCause['kind']>> = { call: 'call', sync: 'run', activation: 'activation' }

/**
 * Loads an account with a fresh token, requested or refreshed where necessary. With a fresh token it costs one statement,
 * shared by concurrent calls; the plan is cached. Not in a transaction: a third party may have to be asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE with the status in its metadata,
 * TOKEN_REQUEST_FAILED while no token can be obtained, CREDENTIALS_INVALID when the third party rejects the account (an active
 * one is `needs_reauth` from then on), DEFINITION_INVALID when override and config no longer fit, SECRET_UNREADABLE
 */
export async function loadAccountForCall(
  deps: Pick<AccountDependencies, 'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues' | 'tokens'>,
  environmentId: string,
  id: string,
  purpose: LoadPurpose,
): Promise<ResolvedAccount> {
  const found = await deps.reader.read({ environmentId, id })
  if (found === undefined) throw notFound('integrated_account', id)
  const error = findLoadError(found.account, purpose)
  if (error !== undefined) throw error
  const definition = await deps.definitions.getVersion(deps.database.pool, found.account)
  const secrets = await deps.secrets.decryptAll(deps.database.pool, accountSecretRef(found.account), found.secrets)
  const account = await withContextForCall(deps, deps.database.pool, found.account)
  const resolved = await deps.tokens.ensureFresh(resolveAccount(account, definition, secrets))
  if (resolved.isMoved) throw accountNotActive('needs_reauth', id)
  return {
    ...resolved,
    access: withCause(resolved.access, CAUSES[purpose], purpose === 'activation' ? account.id : undefined),
  }
}

/** An account as a dry run sees it. */
export interface DryRunAccount {
  readonly resolved: ResolvedAccount
  /** Why a call through it would fail before it is sent; absent when it would not. */
  readonly error: Failure | undefined
}

/**
 * Loads an account in any status with its stored token, expired or not: no third party is asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function loadAccountForDryRun(
  deps: Pick<AccountDependencies, 'database' | 'reader' | 'secrets' | 'definitions' | 'contextValues'>,
  environmentId: string,
  id: string,
): Promise<DryRunAccount> {
  const found = await deps.reader.read({ environmentId, id })
  if (found === undefined) throw notFound('integrated_account', id)
  const definition = await deps.definitions.getVersion(deps.database.pool, found.account)
  const secrets = await deps.secrets.decryptAll(deps.database.pool, accountSecretRef(found.account), found.secrets)
  const account = await withContextForCall(deps, deps.database.pool, found.account)
  const resolved = resolveAccount(account, definition, secrets)
  const error = findLoadError(account, 'call') ?? (resolved.isMoved ? accountNotActive('needs_reauth', id) : undefined)
  return { resolved, error }
}

/** An account that may be synced, and its definition; without credentials, which do not leave this process. */
export interface SyncableAccount {
  readonly account: AccountWithDefinition
  readonly definition: EffectiveDefinition
}

/**
 * Loads an account for a sync that a daemon executes; no third party is asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function getSyncableAccount(
  deps: Pick<AccountDependencies, 'definitions' | 'contextValues'>,
  pool: Pool,
  environmentId: string,
  id: string,
): Promise<SyncableAccount> {
  const account = await findIntegratedAccount(pool, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  const error = findLoadError(account, 'sync')
  if (error !== undefined) throw error
  const { contextErrors, ...whole } = await withWholeContext(deps, pool, account)
  for (const contextError of contextErrors.values()) throw contextError
  const definition = await deps.definitions.getVersion(pool, account)
  if (isMoved(account, definition)) throw accountNotActive('needs_reauth', id)
  return { account: whole, definition }
}

/**
 * Reads an account in any status with its stored token; no third party is asked. One statement, so that fields and token belong
 * together: a token is never sent to the host of fields that were replaced with it.
 *
 * @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function getResolvedAccount(
  deps: Pick<AccountDependencies, 'secrets' | 'definitions' | 'contextValues'>,
  tx: Db,
  environmentId: string,
  id: string,
): Promise<ResolvedAccount> {
  const [found] = await findAccountsWithSecrets(tx, [{ environmentId, id }])
  if (found === undefined) throw notFound('integrated_account', id)
  const { account } = found
  const definition = await deps.definitions.getVersion(tx, account)
  const secrets = await deps.secrets.decryptAll(tx, accountSecretRef(account), found.secrets)
  return resolveAccount(await withContextForCall(deps, tx, account), definition, secrets)
}

/**
 * An account whose credentials stay as they are until the transaction ends, except by this transaction: what is given is merged
 * with what is stored, so that concurrent changes of different fields are both kept.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function lockAccount(tx: Tx, ref: AccountRef): Promise<AccountWithDefinition> {
  await lockAccountCredentials(tx, ref)
  const account = await findIntegratedAccount(tx, ref.environmentId, ref.id)
  if (account === undefined) throw notFound('integrated_account', ref.id)
  return account
}

/**
 * Masks the secrets of an account in texts, for example what a daemon reports. Where they cannot be read, the whole text.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function accountRedactor(
  deps: Pick<AccountDependencies, 'database' | 'secrets' | 'definitions' | 'contextValues'>,
  environmentId: string,
  id: string,
): Promise<(text: string) => string> {
  try {
    const { plan, access } = await getResolvedAccount(deps, deps.database.pool, environmentId, id)
    const redaction = createRedaction(plan, access)
    return (text) => redaction.redactText(text)
  } catch (error) {
    if (error instanceof Failure && ['DEFINITION_INVALID', 'SECRET_UNREADABLE'].includes(error.reason))
      return () => SECRET_MASK
    throw error
  }
}

/** The error of everything that goes through a disabled installation. */
export function integrationDisabled(environmentIntegrationId: string): Failure {
  return new Failure('INTEGRATION_DISABLED', 'the integration is disabled in this environment: set is_enabled first', {
    resource: { type: 'environment_integration', id: environmentIntegrationId },
  })
}

/**
 * Why requests that go through accounts already must end, by account: it was deleted, or its installation is disabled. A status
 * in which no call would begin ends none.
 */
export async function findEndedAccounts(
  tx: Db,
  accounts: readonly AccountRef[],
): Promise<ReadonlyMap<AccountRef, Failure>> {
  const enabled = await findEnabledAccounts(tx, accounts)
  const ended = accounts.flatMap((ref): (readonly [AccountRef, Failure])[] => {
    const account = enabled.get(ref.id)
    if (account === undefined) return [[ref, notFound('integrated_account', ref.id)]]
    return account.isEnabled ? [] : [[ref, integrationDisabled(account.environmentIntegrationId)]]
  })
  return new Map(ended)
}

function findLoadError(account: AccountWithDefinition, purpose: LoadPurpose): Failure | undefined {
  if (!account.isEnabled) return integrationDisabled(account.environmentIntegrationId)
  return isStatusAllowed(purpose, account.status) ? undefined : accountNotActive(account.status, account.id)
}

function isStatusAllowed(purpose: LoadPurpose, status: AccountStatus): boolean {
  switch (purpose) {
    case 'call':
      return status === 'active' || status === 'needs_reauth'
    case 'sync':
      return status === 'active'
    case 'activation':
      return status === 'connecting'
    default:
      return assertNever(purpose)
  }
}

const CONCURRENT_READS_MAX = 2
const ACCOUNTS_PER_READ_MAX = 100

/** Batches concurrent reads; nothing is cached, so a read sees every change that was committed before it. */
export function createAccountReader(database: Pick<Database, 'pool'>): AccountReader {
  const batcher = new MicroBatcher({
    concurrencyMax: CONCURRENT_READS_MAX,
    batchMax: ACCOUNTS_PER_READ_MAX,
    async process(wanted: readonly AccountRef[]) {
      const refs = new Map(wanted.map((each) => [accountKeyOf(each), each]))
      const found = await findAccountsWithSecrets(database.pool, [...refs.values()])
      const byKey = new Map(found.map((each) => [accountKeyOf(each.account), each]))
      return wanted.map((each) => byKey.get(accountKeyOf(each)))
    },
  })
  return { read: (account) => batcher.run(account) }
}

function accountKeyOf({ environmentId, id }: AccountRef): string {
  return `${environmentId}|${id}`.toLowerCase()
}
