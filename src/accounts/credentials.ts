import { type Failure, invalidFields, type Json, type JsonObject, type Violation } from '../base/index.ts'
import type { ConnectPlan, Plan } from '../definition/index.ts'
import { CREDENTIAL_FORMATS, collectFields, IMPORTED_FIELDS } from '../formats/index.ts'
import type { AuthenticationMethod } from '../storage/index.ts'

/** What an application gave to connect an account, checked and taken apart. */
export interface CollectedCredentials {
  readonly connect: ConnectPlan
  readonly authenticationMethod: AuthenticationMethod
  /** Credential material as JSON texts by field name. */
  readonly secrets: Readonly<Record<string, string>>
  /** The other fields, which become part of the context. */
  readonly contextFields: JsonObject
  /** Names that are credential material, given or not: no context key may be called so. */
  readonly secretNames: readonly string[]
  /** Values of `IMPORTED_FIELDS`, when a token that was granted elsewhere came with the fields. */
  readonly importedToken: JsonObject | undefined
}

/** A definition without credentials: whoever calls needs none. */
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
 * Takes credentials for one of the methods that a definition offers.
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

/** Takes credentials for a method; one that needs a token is content without a new one. @throws Failure as above */
export function collectForMethod(connect: ConnectPlan, given: JsonObject): CollectedCredentials {
  const isImport = connect.isTokenImported === true && hasToken(given)
  const collected = collectFields(
    isImport ? [...connect.fields, ...IMPORTED_FIELDS] : connect.fields,
    given,
    'credentials',
    connect.sentInHeaders,
  )
  if (collected.kind === 'refused') throw credentialsError(collected.violations)
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

/** The offered way that a method names, or the only one. @throws Failure CREDENTIALS_INVALID */
export function chooseMethod(offered: readonly ConnectPlan[], method: AuthenticationMethod | undefined): ConnectPlan {
  const possible = offered.length === 0 ? [NO_CREDENTIALS] : offered
  const fitting =
    method === undefined ? possible : possible.filter((connect) => authenticationMethodOf(connect) === method)
  const [chosen, another] = fitting
  const names = [...new Set(possible.map(authenticationMethodOf))].join(', ')
  if (chosen === undefined) throw methodError(`is not offered by the integration: it offers ${names}`, 'enum')
  if (another !== undefined && method === undefined) throw methodError(`is required: one of ${names}`, 'required')
  return chosen
}

/** The method an account records when it was connected this way. */
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
