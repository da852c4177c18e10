import {
  etagMismatch,
  type Failure,
  invalidFields,
  type Json,
  type JsonObject,
  notFound,
  parseJson,
  type Violation,
} from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import type { ConnectPlan, Plan } from '../definitions/index.ts'
import { type AuthenticationMethod, CREDENTIAL_FORMATS, collectFields, IMPORTED_FIELDS } from '../formats/index.ts'
import { type EnvironmentRef, type IntegratedAccount, withIntegration } from './account.ts'
import type { AccountDependencies } from './dependencies.ts'
import { resetToken } from './sql/account-token.ts'
import {
  type AccountWithDefinition,
  findIntegratedAccount,
  updateIntegratedAccountRow,
} from './sql/integrated-account.ts'
import { changeAccountStatus } from './status.ts'
import { accountSecretRef, importToken, TOKEN_SECRET } from './stored-credentials.ts'

/** Credentials that an application gave for an account, validated, secret and visible fields apart. */
export interface CollectedCredentials {
  readonly connect: ConnectPlan
  readonly authenticationMethod: AuthenticationMethod
  /** Credential material as JSON texts by field name. */
  readonly secrets: Readonly<Record<string, string>>
  /** The other fields, which become part of the context. */
  readonly contextFields: JsonObject
  /** Names of secret fields, given or not: no context key may have one of them. */
  readonly secretNames: readonly string[]
  /** Values of `IMPORTED_FIELDS`, when a token that was granted elsewhere came with the fields. */
  readonly importedToken: JsonObject | undefined
}

/** The method of a definition without credentials. */
const NO_CREDENTIALS: ConnectPlan = {
  format: 'api_key',
  fields: [],
  label: undefined,
  verification: undefined,
  token: undefined,
  sentInHeaders: new Set(),
}

const IMPORTED_NAMES: ReadonlySet<string> = new Set(IMPORTED_FIELDS.map(({ name }) => name))

/**
 * Validates credentials for one of the methods that a definition offers.
 *
 * @param method absent: the only one offered
 * @param given field values by name, and a token that was granted elsewhere where the method needs the customer's consent
 * @throws Failure CREDENTIALS_INVALID with every finding under `credentials` and `authentication_method`; SECRET_MASKED when
 * the mask was given for a secret
 */
export function collectCredentials(
  plan: Pick<Plan, 'credentials'>,
  method: AuthenticationMethod | undefined,
  given: JsonObject,
): CollectedCredentials {
  const connect = chooseMethod(plan.credentials, method)
  if (connect.isTokenImported === true && !hasToken(given)) throw methodError(NEEDS_CONSENT, 'method.not_headless')
  return collectForMethod(connect, given)
}

/** Like `collectCredentials`, for a chosen method; a token may be absent where the stored one stays. @throws Failure as above */
function collectForMethod(connect: ConnectPlan, given: JsonObject): CollectedCredentials {
  const isImport = connect.isTokenImported === true && hasToken(given)
  const collected = collectFields(
    isImport ? [...connect.fields, ...IMPORTED_FIELDS] : connect.fields,
    given,
    'credentials',
    connect.sentInHeaders,
  )
  if (collected.kind === 'invalid') throw credentialsError(collected.violations)
  const [secrets, visible] = [splitImported(collected.secrets, isImport), splitImported(collected.visible, isImport)]
  const passwords = connect.fields.filter(({ type }) => type === 'password').map(({ name }) => name)
  return {
    connect,
    authenticationMethod: authenticationMethodOf(connect),
    secrets: Object.fromEntries(Object.entries(secrets.others).map(([name, value]) => [name, JSON.stringify(value)])),
    contextFields: visible.others,
    secretNames: connect.token === undefined ? passwords : [...passwords, ...IMPORTED_NAMES],
    importedToken: isImport ? { ...secrets.imported, ...visible.imported } : undefined,
  }
}

const NEEDS_CONSENT =
  "needs the customer's consent; a token that was granted elsewhere can be given as access_token in credentials, with refresh_token and expires_in beside it"

function hasToken(given: JsonObject): boolean {
  return [...IMPORTED_NAMES].some((name) => (given[name] ?? '') !== '')
}

function splitImported(
  values: JsonObject,
  isImport: boolean,
): { readonly imported: JsonObject; readonly others: JsonObject } {
  const isImported = ([name]: readonly [string, Json]) => isImport && IMPORTED_NAMES.has(name)
  const entries = Object.entries(values)
  return {
    imported: Object.fromEntries(entries.filter(isImported)),
    others: Object.fromEntries(entries.filter((entry) => !isImported(entry))),
  }
}

/** The offered credentials of a method, or the only ones. @throws Failure CREDENTIALS_INVALID */
function chooseMethod(offered: readonly ConnectPlan[], method: AuthenticationMethod | undefined): ConnectPlan {
  const possible = offered.length === 0 ? [NO_CREDENTIALS] : offered
  const fitting =
    method === undefined ? possible : possible.filter((connect) => authenticationMethodOf(connect) === method)
  const [chosen, another] = fitting
  const names = [...new Set(possible.map(authenticationMethodOf))].join(', ')
  if (chosen === undefined) throw methodError(`is not offered by the integration: it offers ${names}`, 'enum')
  if (another !== undefined && method === undefined) throw methodError(`is required: one of ${names}`, 'required')
  return chosen
}

/** The authentication method that accounts connected by a credential format have. */
export function authenticationMethodOf({ format }: Pick<ConnectPlan, 'format'>): AuthenticationMethod {
  const known = CREDENTIAL_FORMATS.find((entry) => entry.format === format)
  if (known === undefined) throw new Error(`no credential format ${format} in the registry`)
  return known.authenticationMethod
}

function methodError(description: string, rule: string): Failure {
  return invalidFields([{ field: 'authentication_method', description, rule }], 'CREDENTIALS_INVALID')
}

function credentialsError(violations: readonly Violation[]): Failure {
  const isMask = violations.every(({ rule }) => rule === 'secret_masked')
  return invalidFields(violations, isMask ? 'SECRET_MASKED' : 'CREDENTIALS_INVALID')
}

/** New values for an account's fields. */
export interface CredentialsChange {
  readonly id: string
  /** By name; null takes an optional one away, a field left out keeps its value. A token as in `createIntegratedAccount`. */
  readonly credentials: JsonObject
  /** The version the caller read; absent: any. */
  readonly version?: number | undefined
}

const NO_TOKEN = { expiresAt: null, dueAt: null }

type UpdateDependencies = Pick<AccountDependencies, 'secrets' | 'definitions' | 'integrations' | 'clock' | 'random'>

/**
 * Replaces an account's credentials: it is `connecting` from then on and activated again, with a token of its new credentials.
 * A token request under way with the old ones is discarded. `tx` is a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, CREDENTIALS_INVALID and SECRET_MASKED with every finding under
 * `credentials`, DEFINITION_INVALID
 */
export async function updateCredentials(
  deps: UpdateDependencies,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  { id, credentials, version }: CredentialsChange,
): Promise<IntegratedAccount> {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  const { plan } = await deps.definitions.getVersion(tx, account)
  const connect = chooseMethod(plan.credentials, account.authenticationMethod)
  const stored = await deps.secrets.get(tx, accountSecretRef(account))
  const collected = collectForMethod(connect, { ...storedValues(connect, stored, account.context), ...credentials })
  await replaceToken(deps, tx, account, collected)
  await replaceFields(deps, tx, account, { collected, version, stored })
  await changeAccountStatus(tx, account, 'reconnected')
  const changed = await findIntegratedAccount(tx, environmentId, id)
  if (changed === undefined) throw notFound('integrated_account', id)
  return await withIntegration(deps.integrations, tx, changed)
}

/** The stored values of the fields, as an application would give them. */
function storedValues(
  { fields }: ConnectPlan,
  stored: Readonly<Record<string, string>>,
  context: JsonObject,
): JsonObject {
  const entries = fields.flatMap(({ name, type }) => {
    const text = type === 'password' ? stored[name] : undefined
    const value = text === undefined ? context[name] : parseJson(text)
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(entries)
}

/** Runs first: a token refresh locks the token's row before the account's, and the other order could deadlock. */
async function replaceToken(
  deps: UpdateDependencies,
  tx: Tx,
  account: AccountWithDefinition,
  { connect, importedToken }: CollectedCredentials,
): Promise<void> {
  if (importedToken !== undefined) return await importToken(deps, tx, account, connect, importedToken)
  // A token by the customer's consent is kept until another one is given.
  if (connect.token === undefined || connect.isTokenImported === true) return
  await resetToken(tx, account, NO_TOKEN)
  await deps.secrets.remove(tx, accountSecretRef(account), [TOKEN_SECRET])
}

async function replaceFields(
  { secrets }: UpdateDependencies,
  tx: Tx,
  account: AccountWithDefinition,
  change: {
    readonly collected: CollectedCredentials
    readonly version: number | undefined
    readonly stored: Readonly<Record<string, string>>
  },
): Promise<void> {
  const { collected, version, stored } = change
  const ref = accountSecretRef(account)
  const isRemoved = (name: string) => name !== TOKEN_SECRET && !Object.hasOwn(collected.secrets, name)
  await secrets.remove(tx, ref, Object.keys(stored).filter(isRemoved))
  const names = collected.connect.fields.map(({ name }) => name)
  const removed = names.filter((name) => !Object.hasOwn(collected.contextFields, name))
  const patch = { context: { keys: collected.contextFields, removed }, version }
  const updated = await updateIntegratedAccountRow(tx, account.environmentId, account.id, patch)
  if (updated === undefined) throw etagMismatch('integrated_account', account.id)
  await secrets.put(tx, ref, collected.secrets)
}
