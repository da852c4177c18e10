import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileJson, renderObject } from '../../expressions/template.ts'
import { compileUrl, renderUrl } from '../../expressions/url-template.ts'
import type { EvaluateExpression } from '../format.ts'
import type { RequestDefinition } from '../request-keys.ts'
import { compileClientAuthentication } from './client-authentication.ts'
import type { TokenContext, TokenResponse, TokenResult, TokenSet } from './credential.ts'
import { type ExtendSettings, type OAuth2Settings, TOKEN_PARAMETERS } from './oauth2-keys.ts'
import { readTokenResponse, tokenPaths } from './token-response.ts'
import type { ClientOwner } from './token-verdict.ts'

/** One kind of request to the authorisation server: token, refresh or revocation. */
export interface EndpointSettings {
  readonly host: string | undefined
  readonly path: string
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly bodyFormat: 'form' | 'json' | 'query'
  readonly headers: OAuth2Settings['tokenHeaders']
  /** Further parameters, over the standard ones. */
  readonly extra: OAuth2Settings['tokenParams']
  readonly parameterNames: Readonly<Record<string, string>>
  readonly omitted: readonly string[]
}

/** Sends a request with standard parameters. @throws Failure of `send` and `evaluate`, PLACEHOLDER_UNRESOLVED */
type RequestEndpoint<Request> = (
  context: TokenContext<Request>,
  scope: TemplateScope,
  params: JsonObject,
) => Promise<TokenResponse>

/**
 * Compiles requests to a token endpoint (RFC 6749 §4.1.3, §4.4.2, §6) or revocation endpoint (RFC 7009 §2.1). Later parameters
 * win: those of the grant, the definition's, the client's. Parameters without a value, and empty ones, are left out.
 */
export function compileEndpoint<Request>(
  settings: OAuth2Settings,
  endpoint: EndpointSettings,
  compileRequest: (request: RequestDefinition) => Request,
): RequestEndpoint<Request> {
  const { host, path, method, headers, parameterNames, omitted } = endpoint
  const isInQuery = endpoint.bodyFormat === 'query' || method === 'GET'
  const extras = compileJson(endpoint.extra ?? {})
  const names = queryNames(endpoint)
  const request = compileRequest({
    method,
    path,
    ...(host === undefined ? {} : { base_url: host }),
    headers: { authorization: '{{args.authorization}}', ...headers },
    ...(isInQuery
      ? { query: Object.fromEntries(names.map((name, index) => [name, `{{args.query[${index}]}}`])) }
      : { body: '{{args.params}}', body_format: endpoint.bodyFormat === 'json' ? 'json' : 'form' }),
  })
  const audience = compileUrl(host ?? '', path)
  const authenticate = compileClientAuthentication(settings)
  return async (context, scope, params) => {
    const values = await computeValues(context.evaluate, settings, scope, params, context.now())
    const valued = withArgs(scope, { values })
    const client = await authenticate(scope, context, renderUrl(audience, scope))
    const standard = renamed({ ...params, ...client.params }, parameterNames, omitted)
    const sent = withoutEmpty({ ...standard, ...renderObject(extras, valued) }, settings.options?.sendEmpty === true)
    const args = {
      values,
      params: sent,
      ...(isInQuery ? { query: names.map((name) => sent[name] ?? null) } : {}),
      ...(client.authorization === undefined ? {} : { authorization: client.authorization }),
    }
    return await context.send(request, withArgs(scope, args))
  }
}

/** Every name that a parameter in the address may have: `MethodPlan` has a template for each. */
function queryNames({ extra, parameterNames }: EndpointSettings): readonly string[] {
  return [...new Set([...TOKEN_PARAMETERS, ...Object.values(parameterNames), ...Object.keys(extra ?? {})])]
}

/** Values of `token.values`, which may read those before them. */
async function computeValues(
  evaluate: EvaluateExpression,
  { token }: OAuth2Settings,
  { account }: TemplateScope,
  params: JsonObject,
  now: Date,
): Promise<JsonObject> {
  const values: Record<string, Json> = {}
  const { credentials, context } = account
  for (const [name, expression] of Object.entries(token?.values ?? {})) {
    const value = await evaluate(expression, { params, credentials, context, values, now: now.getTime() })
    if (value !== undefined) values[name] = value
  }
  return values
}

function withArgs(scope: TemplateScope, args: JsonObject): TemplateScope {
  return { ...scope, call: { ...scope.call, args: { ...scope.call.args, ...args } } }
}

/** The parameters under other names, without those that are not sent. */
export function renamed(
  params: JsonObject,
  names: Readonly<Record<string, string>>,
  omitted: readonly string[],
): JsonObject {
  const kept = Object.entries(params).filter(([name]) => !omitted.includes(name))
  return Object.fromEntries(kept.map(([name, value]) => [names[name] ?? name, value]))
}

/** The parameters without those that are null, or empty unless these are sent. */
export function withoutEmpty(params: JsonObject, isEmptySent: boolean): JsonObject {
  const isSent = (value: Json) => value !== null && (isEmptySent || (value !== '' && !isEmptyCollection(value)))
  return Object.fromEntries(Object.entries(params).filter(([, value]) => isSent(value)))
}

function isEmptyCollection(value: Json): boolean {
  return (Array.isArray(value) && value.length === 0) || (isJsonObject(value) && Object.keys(value).length === 0)
}

/** Default path of the token endpoint. */
const TOKEN_PATH = '/oauth/token'

/** The token endpoint. */
export function tokenEndpoint(settings: OAuth2Settings): EndpointSettings {
  const { auth = {}, options = {}, token = {} } = settings
  return {
    host: auth.tokenHost,
    path: auth.tokenPath ?? TOKEN_PATH,
    method: token.method ?? 'POST',
    bodyFormat: options.bodyFormat ?? 'form',
    headers: settings.tokenHeaders,
    extra: settings.tokenParams,
    parameterNames: token.parameter_names ?? {},
    omitted: token.omit ?? [],
  }
}

/** The token endpoint, or the one of its own for refreshes. */
export function refreshEndpoint(settings: OAuth2Settings): EndpointSettings {
  const { auth = {}, refresh = {} } = settings
  const standard = tokenEndpoint(settings)
  return {
    host: auth.refreshHost ?? standard.host,
    path: auth.refreshPath ?? standard.path,
    method: refresh.method ?? standard.method,
    bodyFormat: refresh.bodyFormat ?? standard.bodyFormat,
    headers: settings.tokenHeaders,
    extra: settings.refreshParams,
    parameterNames: { ...standard.parameterNames, ...refresh.parameter_names },
    omitted: [...standard.omitted, ...(refresh.omit ?? [])],
  }
}

/** The endpoint that exchanges a token for one that lives longer. */
export function extendEndpoint(settings: OAuth2Settings, extend: ExtendSettings): EndpointSettings {
  const standard = tokenEndpoint(settings)
  return {
    ...standard,
    host: extend.host ?? standard.host,
    path: extend.path,
    method: extend.method ?? standard.method,
    extra: extend.params,
    parameterNames: { ...standard.parameterNames, ...extend.parameter_names },
    omitted: [...standard.omitted, ...(extend.omit ?? [])],
  }
}

/** Sends a token request and reads its response. @throws Failure of `send` and `evaluate`, PLACEHOLDER_UNRESOLVED */
export type RequestToken<Request> = (
  context: TokenContext<Request>,
  scope: TemplateScope,
  params: JsonObject,
  previous: TokenSet | undefined,
) => Promise<TokenResult>

/** Compiles requests for a token at an endpoint. @param clientOwner whose error an unknown client is */
export function compileTokenRequest<Request>(
  settings: OAuth2Settings,
  endpoint: EndpointSettings,
  clientOwner: ClientOwner,
  compileRequest: (request: RequestDefinition) => Request,
): RequestToken<Request> {
  const request = compileEndpoint(settings, endpoint, compileRequest)
  const paths = tokenPaths(settings.token_response)
  const { tokenExpiryDuration } = settings
  const lifetimeSeconds = tokenExpiryDuration === undefined ? undefined : Number(tokenExpiryDuration)
  return async (context, scope, params, previous) => {
    const response = await request(context, scope, params)
    return readTokenResponse(response, paths, { clientOwner, now: context.now(), previous, lifetimeSeconds })
  }
}

/** The parameter `scope`, left out when there are none. */
export function scopeParam({ options = {} }: OAuth2Settings, scopes: readonly string[]): JsonObject {
  return scopes.length === 0 ? {} : { scope: scopes.join(options.scopeSeparator ?? ' ') }
}
