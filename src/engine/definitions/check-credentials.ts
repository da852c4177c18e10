import { suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import { type DotPath, formatDotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { CREDENTIAL_FORMATS, listCredentials } from '../formats/credential/registry.ts'
import { type ConfigFinding, toViolations } from './findings.ts'

/** A credential with its path in the config. */
export interface CredentialAt {
  readonly format: string
  readonly settings: JsonObject
  readonly path: DotPath
}

/**
 * Rules between settings of a credential format.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findCredentialProblems(config: JsonObject, path: string): Violation[] {
  const credentials = listCredentialsAt(config.credentials ?? null)
  return toViolations(credentials.flatMap(findSettingProblems), path)
}

/**
 * Findings about an override, where an entry of its credentials lacks a format because its key is misspelt: they name the keys
 * of the definition beside the formats, which are all that the schema knows.
 *
 * @param below the definition, with credentials of the same shape
 * @param path prefix of the fields: `override`
 */
export function nameCredentialKeys(
  findings: readonly Violation[],
  below: JsonObject,
  override: JsonObject,
  path: string,
): Violation[] {
  const inherited = listCredentials(below.credentials).map(({ key }) => key)
  const known = [...inherited, ...CREDENTIAL_FORMATS.map(({ format }) => format)]
  const given = isJsonObject(override.credentials) ? Object.entries(override.credentials) : []
  const unknown = new Map(
    given
      .filter(([key, entry]) => !known.includes(key) && isJsonObject(entry) && entry.format === undefined)
      .map(([key]) => [formatDotPath(['credentials', key, 'format'], path), key] as const),
  )
  return findings.map((finding) => {
    const key = unknown.get(finding.field)
    if (key === undefined) return finding
    const description = `is required, because the key ${key} is neither a credential of the definition nor the name of a format${suggestOneOf(key, known)}`
    return { ...finding, description }
  })
}

/** The credentials of a config. */
export function listCredentialsAt(credentials: Json): CredentialAt[] {
  const isSingle = isJsonObject(credentials) && typeof credentials.format === 'string'
  return listCredentials(credentials).map(({ key, format, config }) => ({
    format,
    settings: isJsonObject(config) ? config : {},
    path: isSingle ? ['credentials', 'config'] : ['credentials', key, 'config'],
  }))
}

/**
 * Credentials that look the same to the customer, and those that the customer types in and nothing tries before the account is
 * active. A definition with warnings is valid: the third party may have no request to try them with.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findCredentialWarnings(config: JsonObject, path: string): Violation[] {
  return [...findSameLabels(config, path), ...findUntriedCredentials(config, path)]
}

/** Credentials of one format that look the same where the customer picks one. */
function findSameLabels({ credentials }: JsonObject, path: string): Violation[] {
  const groups = Map.groupBy(listCredentials(credentials), ({ format, label }) => `${format} ${label ?? ''}`)
  const same = [...groups.values()].filter(({ length }) => length > 1).flat()
  const description = 'looks the same on the connect page as another credential of its format: give it a label'
  return toViolations(
    same.map(({ key }) => ({ at: ['credentials', key], description, rule: 'credentials.same_label' })),
    path,
  )
}

function findUntriedCredentials({ credentials, actions }: JsonObject, path: string): Violation[] {
  const isTried = isJsonObject(actions) && [actions.validation, actions.post_install].some(hasRequest)
  if (isTried) return []
  const untried = listCredentialsAt(credentials ?? null).filter(
    ({ format, settings }) =>
      format === 'api_key' &&
      settings.identity === undefined &&
      settings.verification === undefined &&
      needsInput(settings),
  )
  const description =
    'is tried by no request before the account is active, so that a wrong one is noticed by the first call: set verification or identity, or an action validation with a request'
  return toViolations(
    untried.map((each) => ({ at: each.path.slice(0, -1), description, rule: 'account.unverified' })),
    path,
  )
}

/** Whether the customer has to fill in a field; without a list there is one, which is required. */
function needsInput({ fields }: JsonObject): boolean {
  return !Array.isArray(fields) || fields.some((field) => isJsonObject(field) && field.required === true)
}

/** Whether an action, one step or several, sends a request. */
function hasRequest(action: Json | undefined): boolean {
  if (!isJsonObject(action)) return false
  return Array.isArray(action.steps) ? action.steps.some(hasRequest) : action.type === 'request'
}

function findSettingProblems(at: CredentialAt): ConfigFinding[] {
  return [
    ...findSecretParameters(at),
    ...findUnrequestedScopes(at),
    ...findIdentityProblems(at),
    ...findLifetimeProblems(at),
    ...findIssuerProblems(at),
  ]
}

/** Parameters of the redirect that never become context. */
const SECRET_PARAMETERS: readonly Json[] = ['code', 'state', 'id_token', 'access_token', 'refresh_token']

function findSecretParameters({ settings, path }: CredentialAt): ConfigFinding[] {
  const { context_from_redirect: mapping, authorize } = settings
  if (!isJsonObject(mapping)) return []
  const codeParameter = isJsonObject(authorize) ? authorize.code_parameter : undefined
  const isConsentAlone = settings.grant === 'client_credentials'
  return Object.entries(mapping).flatMap(([key, source]) => {
    const parameter = isJsonObject(source) ? source.parameter : source
    if (parameter === undefined) return []
    const isSecret = SECRET_PARAMETERS.includes(parameter) || (parameter === codeParameter && !isConsentAlone)
    if (!isSecret) return []
    const description = `reads ${parameter}, which is a secret: the context can be read by everyone with access to the environment`
    return [{ at: [...path, 'context_from_redirect', key], description, rule: 'credentials.redirect_secret' }]
  })
}

function findUnrequestedScopes({ settings, path }: CredentialAt): ConfigFinding[] {
  const { scope, optional_scope, required_scope } = settings
  if (!Array.isArray(required_scope)) return []
  const requested = [scope, optional_scope].flatMap((list) => (Array.isArray(list) ? list : []))
  return required_scope.flatMap((name: Json, index) =>
    requested.includes(name)
      ? []
      : [
          {
            at: [...path, 'required_scope', index],
            description: 'is never requested: add it to scope or optional_scope',
            rule: 'credentials.scope_unrequested',
          },
        ],
  )
}

function findIdentityProblems({ format, settings, path }: CredentialAt): ConfigFinding[] {
  const { identity } = settings
  if (format !== 'api_key' || !isJsonObject(identity)) return []
  if (identity.request !== undefined || identity.context !== undefined) return []
  const description = 'is required: without a token endpoint only a request tells who the account is'
  return [{ at: [...path, 'identity', 'request'], description, rule: 'required' }]
}

function findLifetimeProblems({ settings: { lifetimes }, path }: CredentialAt): ConfigFinding[] {
  if (!isJsonObject(lifetimes)) return []
  const { refresh_token_idle_days: idle, refresh_token_max_days: max } = lifetimes
  if (typeof idle !== 'number' || typeof max !== 'number' || idle <= max) return []
  const description = 'is larger than refresh_token_max_days, so that it has no effect'
  return [{ at: [...path, 'lifetimes', 'refresh_token_idle_days'], description, rule: 'credentials.lifetimes' }]
}

function findIssuerProblems({ settings: { auth }, path }: CredentialAt): ConfigFinding[] {
  if (!isJsonObject(auth) || auth.issuerRequired !== true || auth.issuer !== undefined) return []
  const description = 'is required, because issuerRequired is true: the issuer is compared with it'
  return [{ at: [...path, 'auth', 'issuer'], description, rule: 'required' }]
}
