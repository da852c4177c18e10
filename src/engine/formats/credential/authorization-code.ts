import { type JsonObject, parseDotPath } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { compileAuthorizeUrl } from './authorize-url.ts'
import type {
  AuthorizationFailure,
  AuthorizationRedirect,
  AuthorizationResult,
  AuthorizationReturn,
  CompileAuthorizationRules,
  TokenContext,
  TokenResult,
  TokenSet,
} from './credential.ts'
import { matchesPattern } from './field-pattern.ts'
import type { OAuth2Config } from './oauth2-keys.ts'
import { failed, type RedirectParameter, readRedirect, readRedirectContext } from './redirect.ts'
import { compareScopes } from './scopes.ts'
import { compileTokenRequest, extendEndpoint, type RequestToken, scopeParam, tokenEndpoint } from './token-endpoint.ts'

/** What `begin` keeps for `complete`. */
interface AuthorizationMemory {
  readonly verifier: string | undefined
  /** Issuer at the time of the redirect. */
  readonly issuer: string | undefined
  readonly scopes: readonly string[]
}

/** The authorisation code grant with PKCE (RFC 6749 §4.1, RFC 7636, RFC 9207). */
export function authorizationCodeRules(settings: OAuth2Config): CompileAuthorizationRules {
  const requestedScopes = (scopes: readonly string[]) => [...new Set([...(settings.scope ?? []), ...scopes])]
  const writeUrl = (baseUrl: string | undefined) => compileAuthorizeUrl(settings, baseUrl)
  const issuerOf = compileIssuer(settings)
  const readBack = compileReturn(settings)
  return (compileRequest, baseUrl) => {
    const authorizeUrl = writeUrl(baseUrl)
    const requests = {
      exchange: compileTokenRequest(settings, tokenEndpoint(settings), 'integration', compileRequest),
      extend:
        settings.extend === undefined
          ? undefined
          : compileTokenRequest(settings, extendEndpoint(settings, settings.extend), 'integration', compileRequest),
    }
    return {
      requestedScopes,
      async begin(context, scope, { redirectUri, state, scopes }): Promise<AuthorizationRedirect> {
        const requested = requestedScopes(scopes)
        const verifier = settings.pkce === false ? undefined : context.randomSecret()
        const random = context.randomSecret()
        const url = authorizeUrl(scope, { redirectUri, state, scopes: requested, verifier, random })
        const memory = { verifier, issuer: issuerOf(scope), scopes: requested }
        return { kind: 'redirect', url, secrets: secretsFrom(memory) }
      },
      async complete(context, scope, back) {
        const memory = parseMemory(back.secrets)
        const read = readBack(back, memory)
        if (read.kind !== 'code') return read
        const grant = exchangeParams(settings, read.code, back, memory)
        const withRedirect = addContext(scope, read.context)
        return await exchange(requests, settings, { context, scope: withRedirect, grant, memory, found: read.context })
      },
    }
  }
}

function compileIssuer({ auth = {} }: OAuth2Config): (scope: TemplateScope) => string | undefined {
  if (auth.issuer === undefined) return () => undefined
  const template = compileTemplate(auth.issuer)
  return (scope) => renderText(template, scope)
}

type ReadReturn =
  | { readonly kind: 'code'; readonly code: string | undefined; readonly context: JsonObject }
  | Exclude<AuthorizationResult, { readonly kind: 'granted' }>

function compileReturn(settings: OAuth2Config): (back: AuthorizationReturn, memory: AuthorizationMemory) => ReadReturn {
  const { authorize = {}, auth = {} } = settings
  const rules = {
    codeParameter: authorize.code_parameter ?? 'code',
    isCodeEncoded: authorize.decode_code === true,
    pendingWhen: authorize.pending_when ?? {},
    isIssuerRequired: auth.issuerRequired === true,
    hasCode: settings.grant === 'authorization_code',
  }
  const mapping = redirectParameters(settings)
  return ({ params }, { issuer }) => {
    const redirect = readRedirect(params, { ...rules, issuer })
    if (redirect.kind === 'failed') return redirect
    const found = readRedirectContext(params, mapping, rules.codeParameter)
    if (found.kind === 'failed') return found
    return { ...redirect, context: found.context }
  }
}

function redirectParameters({ context_from_redirect = {} }: OAuth2Config): readonly RedirectParameter[] {
  return Object.entries(context_from_redirect).map(([key, source]) =>
    typeof source === 'string'
      ? { key, parameter: source, matches: () => true }
      : { key, parameter: source.parameter, matches: (value) => matchesPattern(source.pattern, value) },
  )
}

function exchangeParams(
  settings: OAuth2Config,
  code: string | undefined,
  { redirectUri }: AuthorizationReturn,
  { verifier, scopes }: AuthorizationMemory,
): JsonObject {
  if (code === undefined) return { grant_type: 'client_credentials', ...scopeParam(settings, scopes) }
  return {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    ...(verifier === undefined ? {} : { code_verifier: verifier }),
  }
}

interface CodeExchange<Request> {
  readonly context: TokenContext<Request>
  readonly scope: TemplateScope
  readonly grant: JsonObject
  readonly memory: AuthorizationMemory
  /** Context keys of the redirect. */
  readonly found: JsonObject
}

async function exchange<Request>(
  requests: { readonly exchange: RequestToken<Request>; readonly extend: RequestToken<Request> | undefined },
  settings: OAuth2Config,
  { context, scope, grant, memory, found }: CodeExchange<Request>,
): Promise<AuthorizationResult> {
  const result = await requests.exchange(context, scope, grant, undefined)
  if (result.kind !== 'granted') return exchangeFailure(result)
  const { accessToken: access_token } = result.token
  const last =
    requests.extend === undefined ? result : await requests.extend(context, scope, { access_token }, result.token)
  return last.kind === 'granted' ? grantedWith(settings, last.token, found, memory.scopes) : exchangeFailure(last)
}

function grantedWith(
  { token_response = {}, required_scope = [] }: OAuth2Config,
  token: TokenSet,
  context: JsonObject,
  requested: readonly string[],
): AuthorizationResult {
  const path = parseDotPath(token_response.scope ?? 'scope')
  const { granted, missing } = compareScopes(token, path, requested)
  const lacking = compareScopes(token, path, required_scope).missing
  if (lacking.length > 0)
    return failed('scope_missing', `the consent was given without the required scopes ${lacking.join(', ')}`)
  return { kind: 'granted', token, context, grantedScopes: granted, missingScopes: missing }
}

/** A request that was not answered as expected. */
export function exchangeFailure({ kind, message }: Exclude<TokenResult, { kind: 'granted' }>): AuthorizationFailure {
  return failed(kind === 'transient' ? 'provider_unreachable' : 'token_exchange_failed', message)
}

function addContext(scope: TemplateScope, context: JsonObject): TemplateScope {
  return { ...scope, account: { ...scope.account, context: { ...scope.account.context, ...context } } }
}

function secretsFrom({ verifier, issuer, scopes }: AuthorizationMemory): JsonObject {
  return {
    ...(verifier === undefined ? {} : { verifier }),
    ...(issuer === undefined ? {} : { issuer }),
    scopes: [...scopes],
  }
}

/** Reads what `secretsFrom` wrote. */
function parseMemory({ verifier, issuer, scopes }: JsonObject): AuthorizationMemory {
  return {
    verifier: typeof verifier === 'string' ? verifier : undefined,
    issuer: typeof issuer === 'string' ? issuer : undefined,
    scopes: Array.isArray(scopes) ? scopes.map(String) : [],
  }
}
