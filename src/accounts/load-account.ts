import { accountNotActive, assertNever, Failure, type JsonObject, notFound, parseJson } from '../base/index.ts'
import type { Database, Tx } from '../database/index.ts'
import type { ConnectPlan, MethodPlan, Plan } from '../definitions/index.ts'
import type { TokenRules } from '../formats/index.ts'
import type { DefinitionCache, EffectiveDefinition } from '../integrations/index.ts'
import { type AccountAccess, createRedaction } from '../proxy/index.ts'
import { SECRET_MASK } from '../redaction/index.ts'
import type { SecretStore } from '../secrets/index.ts'
import { integrationDisabled } from './create-account.ts'
import { authenticationMethodOf } from './credentials.ts'
import type { TokenProvider } from './refresh-token.ts'
import { REFRESH_ACTION } from './request-token.ts'
import type { AccountRef } from './sql/activation.ts'
import {
  type AccountStatus,
  type AccountWithDefinition,
  type AccountWithSecrets,
  findAccountsWithSecrets,
  findIntegratedAccount,
} from './sql/integrated-account.ts'
import { accountSecretRef, parseStoredToken, type StoredToken, TOKEN_SECRET } from './stored-credentials.ts'

/** An account that may be called through, with all that a call needs. Holds plain credentials: never shown, never logged. */
export interface ResolvedAccount {
  readonly account: AccountWithDefinition
  readonly integrationName: string
  readonly plan: Plan
  readonly access: AccountAccess
  /** Absent for accounts that need none, or have none yet. */
  readonly token: StoredToken | undefined
}

/** Where credentials and definitions come from. */
export interface ResolveAccountDeps {
  readonly secrets: Pick<SecretStore, 'get'>
  readonly definitions: DefinitionCache
}

/** What loading an account with a good token needs. */
export interface LoadAccountDeps {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly reader: AccountReader
  readonly secrets: Pick<SecretStore, 'decryptAll'>
  readonly definitions: DefinitionCache
  readonly tokens: Pick<TokenProvider, 'ensureFresh'>
}

/**
 * Why an account is loaded. `call` takes one that needs reauthorisation too: a call that succeeds says otherwise. `sync` takes
 * active ones only. `connect` takes those that are being connected.
 */
export type LoadPurpose = 'call' | 'sync' | 'connect'

/**
 * Loads an account with a token that will do for a while, obtained or refreshed where it has to be: one statement, shared with
 * whoever asks at the same time, and the plan from memory when there is nothing to obtain. Not in a transaction: a third party may have to be asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE with the status in its metadata,
 * TOKEN_REQUEST_FAILED while no token is to be had, CREDENTIALS_INVALID when the third party refuses the account (an active
 * one is `needs_reauth` from then on), DEFINITION_INVALID when override and config no longer fit, SECRET_UNREADABLE
 */
export async function loadAccountForCall(
  deps: LoadAccountDeps,
  environmentId: string,
  id: string,
  purpose: LoadPurpose,
): Promise<ResolvedAccount> {
  const found = await deps.reader.read({ environmentId, id })
  if (found === undefined) throw notFound('integrated_account', id)
  const { account, secrets } = found
  assertLoadable(account, purpose)
  const tx = deps.database.pool
  const definition = await deps.definitions.getVersion(tx, account)
  const texts = await deps.secrets.decryptAll(tx, accountSecretRef(account), secrets)
  return await deps.tokens.ensureFresh(resolvedFrom(account, definition, texts))
}

/** An account as a dry run sees it. */
export interface DryRunAccount {
  readonly resolved: ResolvedAccount
  /** Why a call through it would be refused; absent when it would not. */
  readonly error: Failure | undefined
}

/**
 * Loads an account whatever its status, with the token that is stored, whatever its age: no third party is asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function loadAccountForDryRun(
  { reader, database, definitions, secrets }: Omit<LoadAccountDeps, 'tokens'>,
  environmentId: string,
  id: string,
): Promise<DryRunAccount> {
  const found = await reader.read({ environmentId, id })
  if (found === undefined) throw notFound('integrated_account', id)
  const definition = await definitions.getVersion(database.pool, found.account)
  const texts = await secrets.decryptAll(database.pool, accountSecretRef(found.account), found.secrets)
  return { resolved: resolvedFrom(found.account, definition, texts), error: findLoadError(found.account, 'call') }
}

/** An account that may be synced, and how its definition says. Without credentials: those stay with whoever calls. */
export interface SyncableAccount {
  readonly account: AccountWithDefinition
  readonly definition: EffectiveDefinition
}

/**
 * Loads an account for a sync that somebody else executes; no third party is asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function getSyncableAccount(
  { definitions }: Pick<ResolveAccountDeps, 'definitions'>,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<SyncableAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  assertLoadable(account, 'sync')
  return { account, definition: await definitions.getVersion(tx, account) }
}

/** An account whatever its status, with the token it has. @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE */
export async function getResolvedAccount(
  deps: ResolveAccountDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<ResolvedAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  return await resolveAccount(deps, tx, account)
}

/**
 * A text that came from a caller through the account, without the account's secrets. While they cannot be known, because the definition
 * does not compile or a secret does not open, nothing of the text is shown.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function redactAccountSecrets(
  deps: ResolveAccountDeps & { readonly database: Pick<Database, 'pool'> },
  environmentId: string,
  id: string,
  text: string,
): Promise<string> {
  try {
    const { plan, access } = await getResolvedAccount(deps, deps.database.pool, environmentId, id)
    return createRedaction(plan, access).redactText(text)
  } catch (error) {
    if (error instanceof Failure && ['DEFINITION_INVALID', 'SECRET_UNREADABLE'].includes(error.reason))
      return SECRET_MASK
    throw error
  }
}

/**
 * What a call through the account needs, whatever its status, with the token that is stored, whatever its age. One statement:
 * the token is among the secrets. @throws Failure DEFINITION_INVALID, SECRET_UNREADABLE
 */
async function resolveAccount(
  deps: ResolveAccountDeps,
  tx: Tx,
  account: AccountWithDefinition,
): Promise<ResolvedAccount> {
  const definition = await deps.definitions.getVersion(tx, account)
  return resolvedFrom(account, definition, await deps.secrets.get(tx, accountSecretRef(account)))
}

function resolvedFrom(
  account: AccountWithDefinition,
  { plan, environmentVariables }: EffectiveDefinition,
  secrets: Readonly<Record<string, string>>,
): ResolvedAccount {
  const { [TOKEN_SECRET]: tokenText, ...texts } = secrets
  const { id, environmentId, environmentIntegrationId, tenantId, context, isSandbox, integrationName } = account
  const access = {
    id,
    environmentId,
    environmentIntegrationId,
    tenantId,
    context,
    environmentVariables,
    isSandbox,
    credentials: parseCredentials(texts),
    needsReauth: account.status === 'needs_reauth',
  }
  const ready = { account, integrationName, plan, access, token: undefined }
  return tokenText === undefined ? ready : withToken(ready, parseStoredToken(tokenText))
}

/** The account with another token. */
export function withToken(ready: ResolvedAccount, token: StoredToken): ResolvedAccount {
  const { access, account } = ready
  const credentials = { ...access.credentials, oauth: { token: token.fields } }
  return {
    ...ready,
    token,
    access: { ...access, context: account.context, credentials, credentialVersion: token.version },
  }
}

/** The way in which the account was connected, as its definition has it now. */
export function connectPlanOf({ plan, account }: Pick<ResolvedAccount, 'plan' | 'account'>): ConnectPlan | undefined {
  return plan.credentials.find((each) => authenticationMethodOf(each) === account.authenticationMethod)
}

/** How the account's tokens are had; absent where its fields are all there is. */
export function tokenRulesOf(ready: Pick<ResolvedAccount, 'plan' | 'account'>): TokenRules<MethodPlan> | undefined {
  const rules = connectPlanOf(ready)?.token
  if (rules === undefined || !ready.plan.actions.has(REFRESH_ACTION)) return rules
  return { ...rules, canRequestToken: (previous) => previous !== undefined || rules.canRequestToken(previous) }
}

/** Whether the next token is asked for in steps of the definition's own. The first one never is. */
export function usesRefreshAction({ plan, token }: Pick<ResolvedAccount, 'plan' | 'token'>): boolean {
  return token !== undefined && plan.actions.has(REFRESH_ACTION)
}

/** @throws Failure INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE */
function assertLoadable(account: AccountWithDefinition, purpose: LoadPurpose): void {
  const error = findLoadError(account, purpose)
  if (error !== undefined) throw error
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
    case 'connect':
      return status === 'connecting'
    default:
      return assertNever(purpose)
  }
}

function parseCredentials(texts: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, parseJson(text)]))
}

/** Reads accounts as they are at the moment of asking. */
export interface AccountReader {
  /** `undefined`: there is none. Ids in any case. */
  read(wanted: AccountRef): Promise<AccountWithSecrets | undefined>
}

/** Statements under way at most; whoever comes meanwhile shares the next one. */
const CONCURRENT_READS_MAX = 2
/** Accounts per statement. */
const READ_BATCH_MAX = 100

interface PendingRead {
  readonly wanted: AccountRef
  readonly resolve: (found: AccountWithSecrets | undefined) => void
  readonly reject: (error: unknown) => void
}

/**
 * Reads at once while there is little to do, and together when there is much: under load a statement answers many calls, and
 * none of them with anything older than its question.
 */
export function createAccountReader(database: Pick<Database, 'pool'>): AccountReader {
  const queue: PendingRead[] = []
  let underWay = 0

  async function readOn(): Promise<void> {
    underWay += 1
    while (queue.length > 0) await readTogether(queue.splice(0, READ_BATCH_MAX))
    underWay -= 1
  }

  async function readTogether(batch: readonly PendingRead[]): Promise<void> {
    try {
      const refs = new Map(batch.map(({ wanted }) => [accountKeyOf(wanted), wanted]))
      const found = await findAccountsWithSecrets(database.pool, [...refs.values()])
      const byKey = new Map(found.map((each) => [accountKeyOf(each.account), each]))
      for (const { wanted, resolve } of batch) resolve(byKey.get(accountKeyOf(wanted)))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  return {
    read: (wanted) =>
      new Promise((resolve, reject) => {
        queue.push({ wanted, resolve, reject })
        if (underWay < CONCURRENT_READS_MAX) void readOn()
      }),
  }
}

function accountKeyOf({ environmentId, id }: AccountRef): string {
  return `${environmentId}|${id}`.toLowerCase()
}
