import { type Failure, invalidFields, type JsonObject, type Violation } from '../base/index.ts'
import type { ConnectPlan, Plan } from '../definition/index.ts'
import { CREDENTIAL_FORMATS, collectFields } from '../formats/index.ts'
import type { AuthenticationMethod } from '../storage/index.ts'

/** What an application gave to connect an account, checked and taken apart. */
export interface CollectedCredentials {
  readonly authenticationMethod: AuthenticationMethod
  /** Credential material as JSON texts by field name. */
  readonly secrets: Readonly<Record<string, string>>
  /** The other fields, which become part of the context. */
  readonly visible: JsonObject
  /** Names that are credential material, given or not: no context key may be called so. */
  readonly secretNames: readonly string[]
  /** Whether a request has to prove the credentials before they count. */
  readonly isVerificationPending: boolean
}

/** Formats whose credentials an application can hand in whole, without its customer. */
const HEADLESS_FORMATS: readonly string[] = ['api_key']

/** A definition without credentials: whoever calls needs none. */
const NO_CREDENTIALS: ConnectPlan = {
  format: 'api_key',
  fields: [],
  label: undefined,
  verification: undefined,
  token: undefined,
}

/**
 * Takes credentials for one of the methods that a definition offers.
 *
 * @param method absent: the only one offered
 * @param given field values by name
 * @throws Failure CREDENTIALS_INVALID with every finding under `credentials` and `authentication_method`; SECRET_MASKED when
 * the mask was given for a secret
 */
export function collectCredentials(
  plan: Pick<Plan, 'credentials'>,
  method: AuthenticationMethod | undefined,
  given: JsonObject,
): CollectedCredentials {
  const connect = chooseMethod(plan.credentials, method)
  const collected = collectFields(connect.fields, given, 'credentials')
  if (collected.kind === 'refused') throw refusalOf(collected.violations)
  return {
    authenticationMethod: methodOf(connect),
    secrets: Object.fromEntries(
      Object.entries(collected.secrets).map(([name, value]) => [name, JSON.stringify(value)]),
    ),
    visible: collected.visible,
    secretNames: connect.fields.filter(({ type }) => type === 'password').map(({ name }) => name),
    isVerificationPending: connect.verification !== undefined,
  }
}

function chooseMethod(offered: readonly ConnectPlan[], method: AuthenticationMethod | undefined): ConnectPlan {
  const possible = offered.length === 0 ? [NO_CREDENTIALS] : offered
  const fitting = method === undefined ? possible : possible.filter((connect) => methodOf(connect) === method)
  const [chosen, another] = fitting
  const names = [...new Set(possible.map(methodOf))].join(', ')
  if (chosen === undefined) throw refuseMethod(`is not offered by the integration: it offers ${names}`, 'enum')
  if (another !== undefined && method === undefined) throw refuseMethod(`is required: one of ${names}`, 'required')
  const headless = fitting.find(({ format }) => HEADLESS_FORMATS.includes(format))
  if (headless !== undefined) return headless
  const description = `cannot be connected by handing in credentials: ${chosen.format} needs the customer's consent or a token request`
  throw refuseMethod(description, 'method.not_headless')
}

/** The method an account records when it was connected this way. */
export function methodOf({ format }: Pick<ConnectPlan, 'format'>): AuthenticationMethod {
  const known = CREDENTIAL_FORMATS.find((entry) => entry.format === format)
  if (known === undefined) throw new Error(`no credential format ${format} in the registry`)
  return known.authenticationMethod
}

function refuseMethod(description: string, rule: string): Failure {
  return invalidFields([{ field: 'authentication_method', description, rule }], 'CREDENTIALS_INVALID')
}

function refusalOf(violations: readonly Violation[]): Failure {
  const isMask = violations.every(({ rule }) => rule === 'secret_masked')
  return invalidFields(violations, isMask ? 'SECRET_MASKED' : 'CREDENTIALS_INVALID')
}
