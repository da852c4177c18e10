import type { ConnectPlan, Plan } from '../../engine/definitions/index.ts'
import { importedToken, isSecretField, type TokenSet } from '../../engine/formats/index.ts'
import { etagMismatch, notFound } from '../../foundation/base/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { canonicalJson, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { type EnvironmentRef, type IntegratedAccount, withIntegration } from './account.ts'
import { contextPatchFrom } from './context.ts'
import { assertContextRules, movesHost } from './context-rules.ts'
import { enteredVersionOf } from './create-account.ts'
import { type CollectedCredentials, chooseCredential, collectForMethod, findCredential } from './credentials.ts'
import type { AccountDependencies } from './dependencies.ts'
import { lockAccount } from './load-account.ts'
import { isMoved } from './resolved-account.ts'
import { type AcceptedTerms, storeAcceptedTerms } from './sql/accepted-terms.ts'
import { forgetExternalId, storeReauthorization } from './sql/account-state.ts'
import { resetToken } from './sql/account-token.ts'
import { type AccountWithDefinition, type ContextPatch, findIntegratedAccount } from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'
import { updateAccount, withContextForCall } from './stored-context.ts'
import { accountSecretRef, isFieldName, storeGrantedToken, TOKEN_SECRET, tokenPolicyOf } from './stored-credentials.ts'

/** New values for an account's fields. */
export interface CredentialsChange {
  readonly id: string
  /** By name; null takes an optional one away, a field left out keeps its value. A token as in `createIntegratedAccount`. */
  readonly credentials: JsonObject
  /** Key of the definition's `credentials`; absent: the account keeps its own. With another one nothing of the old fields is kept. */
  readonly credential?: string | undefined
  /** The new credentials may be of another account of the third party. */
  readonly isIdentityChangeConfirmed?: boolean
  /** The version the caller read; absent: any. */
  readonly version?: number | undefined
}

/** What replacing an account's credentials takes. */
export type ReplaceDependencies = Pick<
  AccountDependencies,
  'secrets' | 'definitions' | 'integrations' | 'contextValues' | 'clock' | 'random'
>

/**
 * Replaces an account's credentials: it is `connecting` from then on and activated again, with a token of its new credentials.
 * A token request under way with the old ones is discarded.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CREDENTIALS_INVALID and SECRET_MASKED with every finding under
 * `credentials`, DEFINITION_INVALID
 */
export async function updateCredentials(
  deps: ReplaceDependencies,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  { id, ...replacement }: CredentialsChange,
): Promise<IntegratedAccount> {
  return await replaceCredentials(deps, tx, await lockAccount(tx, { environmentId, id }), replacement)
}

/** What replaces the credentials of an account. */
export interface CredentialsReplacement {
  /** As in `CredentialsChange`. */
  readonly credential?: string | undefined
  /** As in `CredentialsChange`. */
  readonly credentials: JsonObject
  /** A token that was granted by the customer's consent. Absent: the fields may contain one, or the stored one stays. */
  readonly token?: TokenSet | undefined
  /** Context keys to change beside the visible fields, over which they take precedence; null removes one. */
  readonly contextOf?: (collected: CollectedCredentials) => JsonObject
  /** The new credentials may be of another account of the third party. */
  readonly isIdentityChangeConfirmed?: boolean | undefined
  /**
   * A customer enters them, who does not know the stored secrets: when a visible field changes, such as the host that secrets are
   * sent to, none of them is kept.
   */
  readonly isFromCustomer?: boolean
  /** That the customer accepted with them. Absent: those that were accepted before stay. */
  readonly terms?: AcceptedTerms | undefined
  /** As in `CollectedAccount`. */
  readonly enteredVersion?: number | undefined
  readonly version?: number | undefined
}

/**
 * The one way in which credentials are replaced.
 *
 * @param account as `lockAccount` returned it
 * @throws Failure as `updateCredentials`
 */
export async function replaceCredentials(
  deps: ReplaceDependencies,
  tx: Tx,
  account: AccountWithDefinition,
  given: CredentialsReplacement,
): Promise<IntegratedAccount> {
  const definition = await deps.definitions.getVersion(tx, account)
  const enteredVersion = enteredVersionOf(definition, given)
  const { plan } = definition
  const present = findCredential(plan.credentials, account)
  const connect =
    given.credential === undefined && present !== undefined ? present : chooseCredential(plan.credentials, given)
  const stored = await deps.secrets.get(tx, accountSecretRef(account))
  const { context } = await withContextForCall(deps, tx, account)
  const kept = connect === present ? storedValues(connect, stored, context) : {}
  const wasMoved = isMoved(account, definition)
  const { collected, isElsewhere } = collectReplacement({ plan, connect, kept, context, wasMoved }, given)
  const patch = contextPatchOf(collected, given.contextOf?.(collected) ?? {})
  assertContextRules({ plan, connect, context: patch.keys, before: context, writer: 'entry' })
  const replacement = {
    ...given,
    plan,
    stored,
    wasMoved,
    enteredVersion,
    isSame: connect === present && !isElsewhere,
    collected,
    context: patch,
  }
  await replaceToken(deps, tx, account, replacement)
  await replaceFields(deps, tx, account, replacement)
  if (given.isIdentityChangeConfirmed === true) await forgetExternalId(tx, account)
  if (given.terms !== undefined) await storeAcceptedTerms(tx, account, given.terms)
  await changeAccountStatus(tx, account, 'reconnected')
  const changed = await findIntegratedAccount(tx, account.environmentId, account.id)
  if (changed === undefined) throw notFound('integrated_account', account.id)
  return await withIntegration(deps.integrations, tx, changed)
}

/** What new credentials of an account take the place of. */
interface PresentCredentials {
  readonly plan: Plan
  readonly connect: ConnectPlan
  readonly kept: JsonObject
  readonly context: JsonObject
  /** The installation sends requests to other hosts since they were entered. */
  readonly wasMoved: boolean
}

/**
 * The given values over those that are kept. Of an account that a customer moves to another host no secret is: they were entered for
 * the host before.
 *
 * @throws Failure CREDENTIALS_INVALID, SECRET_MASKED, CONTEXT_KEY_RESERVED
 */
function collectReplacement(
  { plan, connect, kept, context, wasMoved }: PresentCredentials,
  { credentials, contextOf, isFromCustomer }: CredentialsReplacement,
): { readonly collected: CollectedCredentials; readonly isElsewhere: boolean } {
  const collected = collectForMethod(connect, { ...kept, ...credentials })
  const { keys, removed } = contextPatchOf(collected, contextOf?.(collected) ?? {})
  const change = { ...keys, ...Object.fromEntries(removed.map((name) => [name, null])) }
  const isElsewhere = wasMoved || (isFromCustomer === true && movesHost(plan, context, change))
  if (isFromCustomer !== true && !isElsewhere) return { collected, isElsewhere }
  const visible = connect.fields.filter((field) => !isSecretField(field)).map(({ name }) => name)
  const valuesOf = (values: JsonObject) => canonicalJson(visible.map((name) => values[name] ?? null))
  if (valuesOf(keys) === valuesOf(kept) && !isElsewhere) return { collected, isElsewhere }
  const keptVisible = Object.fromEntries(Object.entries(kept).filter(([name]) => visible.includes(name)))
  return { collected: collectForMethod(connect, { ...keptVisible, ...credentials }), isElsewhere }
}

interface CollectedReplacement extends CredentialsReplacement {
  readonly plan: Plan
  readonly collected: CollectedCredentials
  readonly context: ContextPatch
  readonly wasMoved: boolean
  readonly enteredVersion: number
  /** The account keeps its credential, and the host it was entered for. */
  readonly isSame: boolean
  /** Secrets of the account so far, JSON texts by name. */
  readonly stored: Readonly<Record<string, string>>
}

/** The stored values of the fields, as an application would give them. */
function storedValues(
  { fields }: ConnectPlan,
  stored: Readonly<Record<string, string>>,
  context: JsonObject,
): JsonObject {
  const entries = fields.flatMap((field) => {
    const { name } = field
    const text = isSecretField(field) ? stored[name] : undefined
    const value = text === undefined ? context[name] : parseJson(text)
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(entries)
}

const NO_TOKEN = { expiresAt: null, dueAt: null }
const NEVER = { dueAt: null, warningAt: null }

/** Discards a token that is no longer the account's, or stores the one that replaces it. */
async function replaceToken(
  deps: ReplaceDependencies,
  tx: Tx,
  account: AccountWithDefinition,
  { plan, isSame, collected: { connect, importedToken: imported }, token: granted }: CollectedReplacement,
): Promise<void> {
  const token = granted ?? (imported === undefined ? undefined : importedToken(imported, deps.clock.now()))
  if (token !== undefined) return await storeGrantedToken(deps, tx, account, tokenPolicyOf(plan, connect, token), token)
  // A token by the customer's consent is kept until another one is given, or another method needs none.
  const isKept = connect.isTokenImported === true || connect.token === undefined
  if (isKept && isSame) return
  await resetToken(tx, account, NO_TOKEN)
  await storeReauthorization(tx, account, NEVER)
  await deps.secrets.remove(tx, accountSecretRef(account), [TOKEN_SECRET])
}

async function replaceFields(
  deps: ReplaceDependencies,
  tx: Tx,
  account: AccountWithDefinition,
  { collected, stored, context, version, wasMoved, enteredVersion }: CollectedReplacement,
): Promise<void> {
  const ref = accountSecretRef(account)
  const isRemoved = (name: string) =>
    isFieldName(name) ? !Object.hasOwn(collected.secrets, name) : wasMoved && name !== TOKEN_SECRET
  await deps.secrets.remove(tx, ref, Object.keys(stored).filter(isRemoved))
  const { authenticationMethod, credential } = collected
  const patch = {
    authenticationMethod,
    credential,
    context,
    enteredVersion,
    version,
  }
  const updated = await updateAccount(deps, tx, account, patch)
  if (updated === undefined) throw etagMismatch('integrated_account', account.id)
  await deps.secrets.put(tx, ref, collected.secrets)
}

/** Visible fields and the given keys over them; a visible field without a value is removed. */
function contextPatchOf({ connect, contextFields }: CollectedCredentials, context: JsonObject) {
  const given = contextPatchFrom(context)
  const keys = { ...contextFields, ...given.keys }
  const absent = connect.fields.map(({ name }) => name).filter((name) => !Object.hasOwn(keys, name))
  const removed = [...absent, ...given.removed]
  return { keys: Object.fromEntries(Object.entries(keys).filter(([name]) => !removed.includes(name))), removed }
}
