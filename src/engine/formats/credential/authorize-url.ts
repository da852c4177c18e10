import { createHash } from 'node:crypto'
import { Failure } from '../../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileJson, renderObject } from '../../expressions/template.ts'
import { compileUrl, renderUrl } from '../../expressions/url-template.ts'
import { compileClientId } from './client-authentication.ts'
import type { AuthorizationStart } from './credential.ts'
import type { OAuth2Config } from './oauth2-keys.ts'
import { renamed, scopeParam, withoutEmpty } from './token-endpoint.ts'

const AUTHORIZE_PATH = '/oauth/authorize'

/** Longest address that browsers and servers accept alike, characters. */
const URL_LENGTH_MAX = 8_192

/** The parts of an authorisation address that each consent has of its own. */
interface AuthorizeParams extends Pick<AuthorizationStart, 'redirectUri' | 'state' | 'scopes'> {
  /** PKCE verifier; absent where it is switched off. */
  readonly verifier: string | undefined
  /** Value of `{{random}}`. */
  readonly random: string
}

/** Compiles the authorisation address (RFC 6749 §4.1.1, RFC 7636 §4.3). @param baseUrl default of the host */
export function compileAuthorizeUrl(
  settings: OAuth2Config,
  baseUrl: string | undefined,
): (scope: TemplateScope, params: AuthorizeParams) => string {
  const { auth = {}, authorize = {}, options = {} } = settings
  const host = auth.authorizeHost ?? auth.tokenHost ?? baseUrl
  const address = host === undefined ? undefined : compileUrl(host, auth.authorizePath ?? AUTHORIZE_PATH)
  const clientId = compileClientId(settings)
  const extras = compileJson(settings.authorizeParams ?? {})
  const omitted = authorize.omit ?? []
  return (scope, params) => {
    if (address === undefined) throw new Failure('DEFINITION_INVALID', 'the definition has no authorizeHost')
    const standard = {
      ...(omitted.includes('client_id') ? {} : { client_id: clientId(scope) }),
      redirect_uri: params.redirectUri,
      response_type: 'code',
      ...scopeParam(settings, params.scopes),
      state: params.state,
      ...challengeOf(params.verifier, settings.pkce === 'plain'),
    }
    const randomized = { ...scope, call: { ...scope.call, random: params.random } }
    const all = { ...renamed(standard, authorize.parameter_names ?? {}, omitted), ...renderObject(extras, randomized) }
    const url = renderUrl(address, scope)
    const query = writeParams(withoutEmpty(all, options.sendEmpty === true), authorize.raw ?? [])
    return assertAddress(joinAddress(url, query, authorize.fragment))
  }
}

/** RFC 7636 §4.2. */
function challengeOf(verifier: string | undefined, isPlain: boolean): JsonObject {
  if (verifier === undefined) return {}
  if (isPlain) return { code_challenge: verifier, code_challenge_method: 'plain' }
  const code_challenge = createHash('sha256').update(verifier).digest('base64url')
  return { code_challenge, code_challenge_method: 'S256' }
}

/** Parameters go behind a `#` of the address: single-page applications read them there. */
export function joinAddress(url: string, query: string, fragment: string | undefined): string {
  const separator = query === '' ? '' : url.includes('?') ? (/[?&]$/.test(url) ? '' : '&') : '?'
  return `${url}${separator}${query}${fragment === undefined ? '' : `#${encodeURI(fragment)}`}`
}

/** Writes parameters as a query string; objects and lists as JSON. @param raw names whose values are not percent-encoded */
export function writeParams(params: JsonObject, raw: readonly string[]): string {
  return Object.entries(params)
    .map(([name, value]) => {
      const text = textOf(value)
      return `${encodeURIComponent(name)}=${raw.includes(name) ? encodeForbidden(text) : encodeURIComponent(text)}`
    })
    .join('&')
}

function textOf(value: Json): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Encodes what no value of a query may hold (RFC 3986 §3.4), and what would begin another parameter or the fragment. */
function encodeForbidden(text: string): string {
  return text.replace(/[^A-Za-z0-9\-._~!$'()*+,;:@/?%=]+/g, encodeURIComponent)
}

function assertAddress(url: string): string {
  if (url.length > URL_LENGTH_MAX)
    throw new Failure('DEFINITION_INVALID', `the authorisation address has more than ${URL_LENGTH_MAX} characters`)
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Failure('DEFINITION_INVALID', 'the authorisation address of the definition is not a URL')
  return url
}
