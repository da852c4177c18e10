import type { JsonObject } from '../../../foundation/json/index.ts'
import type { AuthorizationErrorCode, AuthorizationFailure } from './credential.ts'

/** What a server may do differently when it sends the browser back. */
export interface RedirectRules {
  readonly codeParameter: string
  /** The code is percent-encoded once more. */
  readonly isCodeEncoded: boolean
  /** Parameters with which a consent waits for another person. */
  readonly pendingWhen: Readonly<Record<string, string>>
  /** Issuer of the server (RFC 9207); absent: it is not compared. */
  readonly issuer: string | undefined
  readonly isIssuerRequired: boolean
  /** False where the redirect confirms a consent alone. */
  readonly hasCode: boolean
}

/** What the redirect brought. */
export type Redirect =
  | { readonly kind: 'code'; readonly code: string | undefined }
  | { readonly kind: 'pending' }
  | AuthorizationFailure

/** Error codes with which servers report that the customer declined. */
const DENIALS: ReadonlySet<string> = new Set([
  'access_denied',
  'user_denied',
  'user_cancelled',
  'user_canceled',
  'user_cancelled_login',
  'user_cancelled_authorize',
  'consent_declined',
  'cancelled',
  'canceled',
])

const ERROR_PARAMETERS = ['error', 'error_code'] as const
const DESCRIPTION_PARAMETERS = ['error_description', 'error_message', 'error_reason', 'error_subtype'] as const
const ERROR_LENGTH_MAX = 100
const DESCRIPTION_LENGTH_MAX = 300

/**
 * Reads the parameters of a redirect (RFC 6749 §4.1.2). The issuer is compared before anything else, errors included: they may
 * come from another server (RFC 9207 §2.4).
 */
export function readRedirect(params: Readonly<Record<string, string>>, rules: RedirectRules): Redirect {
  const problem = findIssuerProblem(params.iss, rules)
  if (problem !== undefined) return { kind: 'failed', code: 'issuer_mismatch', message: problem }
  const error = readRedirectError(params)
  if (error !== undefined) return error
  if (isPending(params, rules.pendingWhen)) return { kind: 'pending' }
  if (!rules.hasCode) return { kind: 'code', code: undefined }
  const code = params[rules.codeParameter]
  if (code === undefined || code === '')
    return failed('provider_error', `the redirect of the third party has no parameter ${rules.codeParameter}`)
  return { kind: 'code', code: rules.isCodeEncoded ? decode(code) : code }
}

function findIssuerProblem(
  given: string | undefined,
  { issuer, isIssuerRequired }: Pick<RedirectRules, 'issuer' | 'isIssuerRequired'>,
): string | undefined {
  if (given === undefined)
    return isIssuerRequired ? 'the redirect names no issuer, although the definition requires one' : undefined
  if (issuer === undefined || given === issuer) return undefined
  return `the redirect comes from the issuer ${plain(given, ERROR_LENGTH_MAX)} instead of ${issuer}`
}

/** An error of the third party, also where it names a reason alone. */
export function readRedirectError(params: Readonly<Record<string, string>>): AuthorizationFailure | undefined {
  const name = ERROR_PARAMETERS.find((parameter) => (params[parameter] ?? '') !== '')
  if (name === undefined) return undefined
  const error = plain(params[name] ?? '', ERROR_LENGTH_MAX)
  const said = DESCRIPTION_PARAMETERS.map((parameter) => params[parameter]).find((text) => (text ?? '') !== '')
  const message = said === undefined ? error : `${error}: ${plain(said, DESCRIPTION_LENGTH_MAX)}`
  return failed(isDenial(error, params) ? 'consent_denied' : 'provider_error', message, error)
}

function isDenial(error: string, { error_reason }: Readonly<Record<string, string>>): boolean {
  return DENIALS.has(error.toLowerCase()) || (error_reason !== undefined && DENIALS.has(error_reason.toLowerCase()))
}

/** A failure of the provider's side. */
export function failed(code: AuthorizationErrorCode, message: string, providerError?: string): AuthorizationFailure {
  return { kind: 'failed', code, message, ...(providerError === undefined ? {} : { providerError }) }
}

function isPending(params: Readonly<Record<string, string>>, when: Readonly<Record<string, string>>): boolean {
  const expected = Object.entries(when)
  return expected.length > 0 && expected.every(([name, value]) => params[name] === value)
}

/** The text on one line, without control characters, truncated. */
function plain(text: string, lengthMax: number): string {
  return text
    .slice(0, lengthMax * 4)
    .replace(/[\s\p{C}]+/gu, ' ')
    .slice(0, lengthMax)
    .trim()
}

function decode(code: string): string {
  try {
    return decodeURIComponent(code)
  } catch {
    return code
  }
}

/** A parameter that becomes a context key. */
export interface RedirectParameter {
  readonly key: string
  readonly parameter: string
  readonly matches: (value: string) => boolean
}

/** Parameters that never become context. */
const SECRET_PARAMETERS: readonly string[] = ['code', 'state', 'id_token', 'access_token', 'refresh_token']
const VALUE_LENGTH_MAX = 2_048

/** The context keys of a redirect, or why a value is not what the definition says. */
export function readRedirectContext(
  params: Readonly<Record<string, string>>,
  mapping: readonly RedirectParameter[],
  codeParameter: string,
): { readonly kind: 'context'; readonly context: JsonObject } | AuthorizationFailure {
  const context: Record<string, string> = {}
  for (const { key, parameter, matches } of mapping) {
    const value = params[parameter]
    if (value === undefined || value === '' || SECRET_PARAMETERS.includes(parameter) || parameter === codeParameter)
      continue
    if (value.length > VALUE_LENGTH_MAX || !matches(value))
      return failed('provider_error', `the redirect has a parameter ${parameter} that the definition does not allow`)
    context[key] = value
  }
  return { kind: 'context', context }
}
