import type { ConnectPlan, Plan } from '../../engine/definitions/index.ts'
import {
  type AuthenticationMethod,
  authenticationMethodOfFormat,
  collectFields,
  IMPORTED_FIELDS,
  isSecretField,
} from '../../engine/formats/index.ts'
import { type Failure, invalidFields, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'

/** Credentials that were given for an account, validated, secret and visible fields apart. */
export interface CollectedCredentials {
  readonly connect: ConnectPlan
  readonly authenticationMethod: AuthenticationMethod
  /** Key of the definition's `credentials`. */
  readonly credential: string
  /** Credential material as JSON texts by field name. */
  readonly secrets: Readonly<Record<string, string>>
  /** The other fields, which become part of the context. */
  readonly contextFields: JsonObject
  /** Names of secret fields, given or not: no context key may have one of them. */
  readonly secretNames: readonly string[]
  /** Values of `IMPORTED_FIELDS`, when a token that was granted elsewhere came with the fields. */
  readonly importedToken: JsonObject | undefined
}

/** Which of a definition's credentials is meant; what is undefined does not restrict. */
export interface CredentialRef {
  /** Its key in the definition's `credentials`. */
  readonly credential?: string | undefined
  readonly authenticationMethod?: AuthenticationMethod | undefined
}

/** The method of a definition without credentials. */
const NO_CREDENTIALS: ConnectPlan = {
  key: 'api_key',
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
 * @param chosen empty: the only one offered
 * @param given field values by name, and a token that was granted elsewhere where the method needs the customer's consent
 * @throws Failure CREDENTIALS_INVALID with every finding under `credentials`, `credential` and `authentication_method`; SECRET_MASKED
 * when the mask was given for a secret
 */
export function collectCredentials(
  plan: Pick<Plan, 'credentials'>,
  chosen: CredentialRef,
  given: JsonObject,
): CollectedCredentials {
  const connect = chooseCredential(plan.credentials, chosen)
  if (connect.isTokenImported === true && !hasToken(given)) throw methodError(NEEDS_CONSENT, 'method.not_headless')
  return collectForMethod(connect, given)
}

/**
 * Like `collectCredentials`, for a chosen method; a token may be absent: the stored one stays, or one was granted.
 *
 * @throws Failure as `collectCredentials`
 */
export function collectForMethod(connect: ConnectPlan, given: JsonObject): CollectedCredentials {
  const isImport = connect.isTokenImported === true && hasToken(given)
  const collected = collectFields(
    isImport ? [...connect.fields, ...IMPORTED_FIELDS] : connect.fields,
    given,
    'credentials',
    { sentInHeaders: connect.sentInHeaders },
  )
  if (collected.kind === 'invalid') throw credentialsError(collected.violations)
  const [secrets, visible] = [splitImported(collected.secrets, isImport), splitImported(collected.visible, isImport)]
  const secretFields = connect.fields.filter(isSecretField).map(({ name }) => name)
  return {
    connect,
    authenticationMethod: authenticationMethodOf(connect),
    credential: connect.key,
    secrets: Object.fromEntries(Object.entries(secrets.others).map(([name, value]) => [name, JSON.stringify(value)])),
    contextFields: visible.others,
    secretNames: connect.token === undefined ? secretFields : [...secretFields, ...IMPORTED_NAMES],
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

/** The ways of connecting an account that a definition offers, in its order; at least one. */
export function connectPlansOf({ credentials }: Pick<Plan, 'credentials'>): readonly ConnectPlan[] {
  return credentials.length === 0 ? [NO_CREDENTIALS] : credentials
}

/** The offered credentials that are meant, or the only ones. @throws Failure CREDENTIALS_INVALID */
export function chooseCredential(
  credentials: readonly ConnectPlan[],
  { credential, authenticationMethod: method }: CredentialRef,
): ConnectPlan {
  const possible = connectPlansOf({ credentials })
  const named = credential === undefined ? possible : possible.filter((each) => each.key === credential)
  if (named.length === 0) {
    const near = suggestOneOf(credential ?? '', keysOf(possible))
    throw credentialError(`is not offered by the integration${near}`, 'enum')
  }
  const fitting = method === undefined ? named : named.filter((each) => authenticationMethodOf(each) === method)
  const [chosen, another] = fitting
  const names = [...new Set(named.map(authenticationMethodOf))]
  if (chosen === undefined && credential !== undefined)
    throw methodError(`must be ${names.join()} or absent: the credential ${credential} has that method`, 'credential')
  if (chosen === undefined)
    throw methodError(`is not offered by the integration${suggestOneOf(method ?? '', names)}`, 'enum')
  if (another === undefined) return chosen
  if (method === undefined && names.length === fitting.length)
    throw methodError(`is required: one of ${names.join(', ')}`, 'required')
  throw credentialError(`is required: one of ${keysOf(fitting).join(', ')}`, 'required')
}

/**
 * The credentials by which an account is connected. Under another key than its own, those are meant that alone have its method;
 * `undefined` when the definition has none or several of them.
 */
export function findCredential(
  credentials: readonly ConnectPlan[],
  { credential, authenticationMethod }: Required<Pick<CredentialRef, 'credential' | 'authenticationMethod'>>,
): ConnectPlan | undefined {
  const fitting = connectPlansOf({ credentials }).filter(
    (each) => authenticationMethodOf(each) === authenticationMethod,
  )
  return fitting.find(({ key }) => key === credential) ?? (fitting.length === 1 ? fitting[0] : undefined)
}

function keysOf(credentials: readonly ConnectPlan[]): readonly string[] {
  return credentials.map(({ key }) => key)
}

/** The authentication method that accounts connected by a credential format have. */
export function authenticationMethodOf({ format }: Pick<ConnectPlan, 'format'>): AuthenticationMethod {
  const method = authenticationMethodOfFormat(format)
  if (method === undefined) throw new Error(`no credential format ${format} in the registry`)
  return method
}

function methodError(description: string, rule: string): Failure {
  return invalidFields([{ field: 'authentication_method', description, rule }], 'CREDENTIALS_INVALID')
}

function credentialError(description: string, rule: string): Failure {
  return invalidFields([{ field: 'credential', description, rule }], 'CREDENTIALS_INVALID')
}

function credentialsError(violations: readonly Violation[]): Failure {
  const isMask = violations.every(({ rule }) => rule === 'secret_masked')
  return invalidFields(violations, isMask ? 'SECRET_MASKED' : 'CREDENTIALS_INVALID')
}
