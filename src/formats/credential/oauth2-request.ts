import type { JsonObject } from '../../base/index.ts'
import { compileJson, compileUrl, renderObject, renderUrl, type TemplateScope } from '../../expression/index.ts'
import type { RequestDefinition } from '../request-keys.ts'
import { compileClientAuthentication } from './client-authentication.ts'
import type { OAuth2Settings } from './oauth2-keys.ts'
import type { TokenContext, TokenResult, TokenSet } from './token.ts'
import { readTokenResponse, tokenPaths } from './token-grant.ts'
import type { ClientOwner } from './token-response.ts'

/** One grant at a token endpoint: which parameters it has, and where its own extra ones are. */
export interface TokenGrant {
  readonly path: string
  readonly extra: OAuth2Settings['tokenParams']
  readonly clientOwner: ClientOwner
}

/** Asks the token endpoint. @param params of the grant itself @throws Failure of `send`, PLACEHOLDER_UNRESOLVED */
export type RequestToken<Request> = (
  tools: TokenContext<Request>,
  scope: TemplateScope,
  params: JsonObject,
  previous: TokenSet | undefined,
) => Promise<TokenResult>

/** Where tokens are had by default. */
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
  return async (tools, scope, params, previous) => {
    const client = authenticate(scope, tools, renderUrl(audience, scope))
    const args = {
      params: { ...params, ...renderObject(extras, scope), ...client.params },
      ...(client.authorization === undefined ? {} : { authorization: client.authorization }),
    }
    const response = await tools.send(request, { ...scope, call: { ...scope.call, args } })
    return readTokenResponse(response, paths, { clientOwner, now: tools.now(), previous, lifetimeSeconds })
  }
}

/** The path of the token endpoint. */
export function tokenPath({ auth = {} }: OAuth2Settings): string {
  return auth.tokenPath ?? TOKEN_PATH
}

/** The parameter `scope`, left out when nothing is asked for. */
export function scopeParam({ scope = [], options = {} }: OAuth2Settings): JsonObject {
  return scope.length === 0 ? {} : { scope: scope.join(options.scopeSeparator ?? ' ') }
}
