import { accountNotActive, assertNever, Failure, type JsonObject, notFound, parseJson } from '../base/index.ts'
import type { ConnectPlan, MethodPlan, Plan } from '../definition/index.ts'
import type { TokenRules } from '../formats/index.ts'
import type { DefinitionInForce, DefinitionSource } from '../integrations/index.ts'
import { type AccountAccess, redactionOf } from '../proxy/index.ts'
import {
  type AccountStatus,
  type AccountWithVersions,
  type Database,
  findIntegratedAccount,
  type Secrets,
  type Tx,
} from '../storage/index.ts'
import { SECRET_MASK } from '../vault/index.ts'
import type { AccountReader } from './account-reader.ts'
import { integrationDisabled } from './connect.ts'
import { methodOf } from './credentials.ts'
import { accountSecrets } from './secret-ref.ts'
import { RENEWAL_ACTION } from './tokens/ask-by-action.ts'
import { readToken, type StoredToken, TOKEN_SECRET } from './tokens/stored-token.ts'
import type { Tokens } from './tokens/tokens.ts'

/** An account that may be called through, with all that a call needs. Holds plain credentials: never shown, never logged. */
export interface ReadyAccount {
  readonly account: AccountWithVersions
  readonly integrationName: string
  readonly plan: Plan
  readonly access: AccountAccess
  /** Absent for accounts that need none, or have none yet. */
  readonly token: StoredToken | undefined
}

/** Where credentials and definitions come from. */
export interface AccessDeps {
  readonly secrets: Pick<Secrets, 'get'>
  readonly definitions: DefinitionSource
}

/** What loading an account with a good token needs. */
export interface ReadyDeps {
  readonly database: Pick<Database, 'direct' | 'transaction'>
  readonly reader: AccountReader
  readonly secrets: Pick<Secrets, 'open'>
  readonly definitions: DefinitionSource
  readonly tokens: Pick<Tokens, 'fresh'>
}

/**
 * Why an account is loaded. `call` takes one that needs reauthorisation too: a call that succeeds says otherwise. `sync` takes
 * active ones only. `connect` takes those that are being connected.
 */
export type AccessPurpose = 'call' | 'sync' | 'connect'

/**
 * Loads an account with a token that will do for a while, obtained or refreshed where it has to be: one statement, shared with
 * whoever asks at the same time, and the plan from memory when there is nothing to obtain. Not in a transaction: a third party may have to be asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE with the status in its metadata,
 * TOKEN_REQUEST_FAILED while no token is to be had, CREDENTIALS_INVALID when the third party refuses the account (an active
 * one is `needs_reauth` from then on), DEFINITION_INVALID when override and config no longer fit, SECRET_UNREADABLE
 */
export async function readyAccess(
  deps: ReadyDeps,
  environmentId: string,
  id: string,
  purpose: AccessPurpose,
): Promise<ReadyAccount> {
  const found = await deps.reader.read({ environmentId, id })
  if (found === undefined) throw notFound('integrated_account', id)
  const { account, secrets } = found
  requireAdmitted(account, purpose)
  const tx = deps.database.direct
  const definition = await deps.definitions.at(tx, account)
  const texts = await deps.secrets.open(tx, accountSecrets(account), secrets)
  return await deps.tokens.fresh(readyFrom(account, definition, texts))
}

/** An account as a dry run sees it. */
export interface PreviewedAccount {
  readonly ready: ReadyAccount
  /** Why a call through it would be refused; absent when it would not. */
  readonly error: Failure | undefined
}

/**
 * Loads an account whatever its status, with the token that is stored, whatever its age: no third party is asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function previewAccess(
  { reader, database, definitions, secrets }: Omit<ReadyDeps, 'tokens'>,
  environmentId: string,
  id: string,
): Promise<PreviewedAccount> {
  const found = await reader.read({ environmentId, id })
  if (found === undefined) throw notFound('integrated_account', id)
  const definition = await definitions.at(database.direct, found.account)
  const texts = await secrets.open(database.direct, accountSecrets(found.account), found.secrets)
  return { ready: readyFrom(found.account, definition, texts), error: findAccessError(found.account, 'call') }
}

/** An account that may be synced, and how its definition says. Without credentials: those stay with whoever calls. */
export interface SyncableAccount {
  readonly account: AccountWithVersions
  readonly definition: DefinitionInForce
}

/**
 * Loads an account for a sync that somebody else executes; no third party is asked.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE, DEFINITION_INVALID, SECRET_UNREADABLE
 */
export async function findSyncableAccount(
  { definitions }: Pick<AccessDeps, 'definitions'>,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<SyncableAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  requireAdmitted(account, 'sync')
  return { account, definition: await definitions.at(tx, account) }
}

/** An account whatever its status, with the token it has. @throws Failure RESOURCE_NOT_FOUND, DEFINITION_INVALID, SECRET_UNREADABLE */
export async function findReadyAccount(
  deps: AccessDeps,
  tx: Tx,
  environmentId: string,
  id: string,
): Promise<ReadyAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  return await withAccess(deps, tx, account)
}

/**
 * A text that came from a caller through the account, without the account's secrets. While they cannot be known, because the definition
 * does not compile or a secret does not open, nothing of the text is shown.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function redactFor(
  deps: AccessDeps & { readonly database: Pick<Database, 'direct'> },
  environmentId: string,
  id: string,
  text: string,
): Promise<string> {
  try {
    const { plan, access } = await findReadyAccount(deps, deps.database.direct, environmentId, id)
    return redactionOf(plan, access).text(text)
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
async function withAccess(deps: AccessDeps, tx: Tx, account: AccountWithVersions): Promise<ReadyAccount> {
  const definition = await deps.definitions.at(tx, account)
  return readyFrom(account, definition, await deps.secrets.get(tx, accountSecrets(account)))
}

function readyFrom(
  account: AccountWithVersions,
  { plan, environmentVariables }: DefinitionInForce,
  secrets: Readonly<Record<string, string>>,
): ReadyAccount {
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
    credentials: credentialsFrom(texts),
    needsReauth: account.status === 'needs_reauth',
  }
  const ready = { account, integrationName, plan, access, token: undefined }
  return tokenText === undefined ? ready : withToken(ready, readToken(tokenText))
}

/** The account with another token. */
export function withToken(ready: ReadyAccount, token: StoredToken): ReadyAccount {
  const { access, account } = ready
  const credentials = { ...access.credentials, oauth: { token: token.fields } }
  return {
    ...ready,
    token,
    access: { ...access, context: account.context, credentials, credentialVersion: token.version },
  }
}

/** The way in which the account was connected, as its definition has it now. */
export function connectPlanOf({ plan, account }: Pick<ReadyAccount, 'plan' | 'account'>): ConnectPlan | undefined {
  return plan.credentials.find((each) => methodOf(each) === account.authenticationMethod)
}

/** How the account's tokens are had; absent where its fields are all there is. */
export function tokenRulesOf(ready: Pick<ReadyAccount, 'plan' | 'account'>): TokenRules<MethodPlan> | undefined {
  const rules = connectPlanOf(ready)?.token
  if (rules === undefined || !ready.plan.actions.has(RENEWAL_ACTION)) return rules
  return { ...rules, canObtain: (previous) => previous !== undefined || rules.canObtain(previous) }
}

/** Whether the next token is asked for in steps of the definition's own. The first one never is. */
export function isRenewedByAction({ plan, token }: Pick<ReadyAccount, 'plan' | 'token'>): boolean {
  return token !== undefined && plan.actions.has(RENEWAL_ACTION)
}

/** @throws Failure INTEGRATION_DISABLED, ACCOUNT_NOT_ACTIVE */
function requireAdmitted(account: AccountWithVersions, purpose: AccessPurpose): void {
  const error = findAccessError(account, purpose)
  if (error !== undefined) throw error
}

function findAccessError(account: AccountWithVersions, purpose: AccessPurpose): Failure | undefined {
  if (!account.isEnabled) return integrationDisabled(account.environmentIntegrationId)
  return isAdmitted(purpose, account.status) ? undefined : accountNotActive(account.status, account.id)
}

function isAdmitted(purpose: AccessPurpose, status: AccountStatus): boolean {
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

function credentialsFrom(texts: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, parseJson(text)]))
}
