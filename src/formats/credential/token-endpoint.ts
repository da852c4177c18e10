import type { JsonObject } from '../../base/index.ts'
import {
  compileJson,
  compileTemplate,
  compileUrl,
  renderObject,
  renderText,
  renderUrl,
  renderValue,
  type TemplateScope,
} from '../../expressions/index.ts'
import type { RequestDefinition } from '../request-keys.ts'
import { signJwt } from '../sign-jwt.ts'
import type { OAuth2Settings } from './config-keys.ts'
import type { TokenContext, TokenResult, TokenSet } from './credential.ts'
import { type ClientOwner, readTokenResponse, tokenPaths } from './token-response.ts'

/** One grant at a token endpoint, with its path and its extra parameters. */
export interface TokenGrant {
  readonly path: string
  readonly extra: OAuth2Settings['tokenParams']
  readonly clientOwner: ClientOwner
}

/** Sends a token request. @param params of the grant itself @throws Failure of `send`, PLACEHOLDER_UNRESOLVED */
export type RequestToken<Request> = (
  context: TokenContext<Request>,
  scope: TemplateScope,
  params: JsonObject,
  previous: TokenSet | undefined,
) => Promise<TokenResult>

/** Default path of the token endpoint. */
const TOKEN_PATH = '/oauth/token'

/**
 * Compiles token requests (RFC 6749 §4.4.2 and §6). Later parameters win: the grant, the definition's, the client's.
 */
export function compileTokenEndpoint<Request>(
  settings: OAuth2Settings,
  { path, extra, clientOwner }: TokenGrant,
  compileRequest: (request: RequestDefinition) => Request,
): RequestToken<Request> {
  const { auth = {}, options = {}, tokenHeaders, tokenExpiryDuration } = settings
  const request = compileRequest({
    method: 'POST',
    path,
    ...(auth.tokenHost === undefined ? {} : { base_url: auth.tokenHost }),
    headers: { authorization: '{{args.authorization}}', ...tokenHeaders },
    body: '{{args.params}}',
    body_format: options.bodyFormat ?? 'form',
  })
  const audience = compileUrl(auth.tokenHost ?? '', path)
  const authenticate = compileClientAuthentication(settings)
  const extras = compileJson(extra ?? {})
  const paths = tokenPaths(settings.token_response)
  const lifetimeSeconds = tokenExpiryDuration === undefined ? undefined : Number(tokenExpiryDuration)
  return async (context, scope, params, previous) => {
    const client = await authenticate(scope, context, renderUrl(audience, scope))
    const args = {
      params: { ...params, ...renderObject(extras, scope), ...client.params },
      ...(client.authorization === undefined ? {} : { authorization: client.authorization }),
    }
    const response = await context.send(request, { ...scope, call: { ...scope.call, args } })
    return readTokenResponse(response, paths, { clientOwner, now: context.now(), previous, lifetimeSeconds })
  }
}

/** The path of the token endpoint. */
export function tokenPath({ auth = {} }: OAuth2Settings): string {
  return auth.tokenPath ?? TOKEN_PATH
}

/** The parameter `scope`, left out when the definition names none. */
export function scopeParam({ scope = [], options = {} }: OAuth2Settings): JsonObject {
  return scope.length === 0 ? {} : { scope: scope.join(options.scopeSeparator ?? ' ') }
}

/** Client authentication of a token request. */
interface ClientAuthentication {
  /** Value of the header `Authorization`. */
  readonly authorization: string | undefined
  readonly params: JsonObject
}

/** @param audience the address of the token endpoint, for an assertion @throws Failure PLACEHOLDER_UNRESOLVED, EXPRESSION_FAILED */
type AuthenticateClient = (
  scope: TemplateScope,
  context: { readonly now: () => Date; readonly nonce: () => string },
  audience: string,
) => ClientAuthentication | Promise<ClientAuthentication>

/** Lifetime of a client assertion. */
const ASSERTION_SECONDS = 300
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/**
 * RFC 6749 §2.3.1 or RFC 7523 §2.2. A client without a secret is a public one: it sends its id as a parameter.
 */
function compileClientAuthentication({ client = {}, options = {} }: OAuth2Settings): AuthenticateClient {
  const id = compileTemplate(client.id ?? '{{client_id}}')
  const secretTemplate = compileTemplate(client.secret ?? '{{client_secret}}')
  const clientId = (scope: TemplateScope) => renderText(id, scope)
  if (options.authorizationMethod === 'private_key_jwt') return compileClientAssertion(client, clientId)
  const encode = options.credentialsEncodingMode === 'loose' ? identity : formEncode
  return (scope) => {
    const client_id = clientId(scope)
    const secret = renderValue(secretTemplate, scope) ?? undefined
    if (secret === undefined) return { authorization: undefined, params: { client_id } }
    if (options.authorizationMethod === 'body')
      return { authorization: undefined, params: { client_id, client_secret: String(secret) } }
    const pair = Buffer.from(`${encode(client_id)}:${encode(String(secret))}`).toString('base64')
    return { authorization: `Basic ${pair}`, params: {} }
  }
}

function compileClientAssertion(
  { private_key = '{{private_key}}', key_id, algorithm = 'RS256' }: NonNullable<OAuth2Settings['client']>,
  clientId: (scope: TemplateScope) => string,
): AuthenticateClient {
  const key = compileTemplate(private_key)
  const keyId = key_id === undefined ? undefined : compileTemplate(key_id)
  return async (scope, { now, nonce }, audience) => {
    const client_id = clientId(scope)
    const iat = Math.floor(now().getTime() / 1_000)
    const exp = iat + ASSERTION_SECONDS
    const client_assertion = await signJwt({
      algorithm,
      key: renderText(key, scope),
      keyId: keyId === undefined ? undefined : renderText(keyId, scope),
      claims: { iss: client_id, sub: client_id, aud: audience, jti: nonce(), iat, exp },
    })
    return { authorization: undefined, params: { client_id, client_assertion_type: ASSERTION_TYPE, client_assertion } }
  }
}

function formEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

function identity(text: string): string {
  return text
}
