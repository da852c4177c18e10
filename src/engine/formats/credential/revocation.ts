import type { RequestDefinition } from '../request-keys.ts'
import type { RevocationResult, TokenContext, TokenResponse, TokenRules, TokenSet } from './credential.ts'
import type { OAuth2Settings } from './oauth2-keys.ts'
import { compileEndpoint, type EndpointSettings, tokenEndpoint } from './token-endpoint.ts'
import { errorCodeOf, isTokenError, parseLooseBody, tokenErrorFrom } from './token-response.ts'

type TokenType = 'refresh_token' | 'access_token'

/** Error codes of a token that ended before. */
const UNKNOWN_TOKEN_CODES: ReadonlySet<string> = new Set([
  'invalid_token',
  'invalid_grant',
  'token_revoked',
  'token_expired',
  'token_not_found',
])
const UNSUPPORTED = 'unsupported_token_type'

/** `revokeToken` of token rules, where the definition has an address for it (RFC 7009). */
export function revocationOf<Request>(
  settings: OAuth2Settings,
  compileRequest: (request: RequestDefinition) => Request,
): Pick<TokenRules<Request>, 'revokeToken'> {
  const endpoint = revocationEndpoint(settings)
  if (endpoint === undefined) return {}
  const request = compileEndpoint(settings, endpoint, compileRequest)
  return {
    async revokeToken(context, scope, token) {
      for (const type of typesToRevoke(settings, token)) {
        const response = await request(context, scope, { token: textOf(token, type), token_type_hint: type })
        const result = readRevocation(response, context)
        if (result !== undefined) return result
      }
      return { kind: 'client_refused', message: UNSUPPORTED, retryAfterSeconds: undefined }
    },
  }
}

function revocationEndpoint(settings: OAuth2Settings): EndpointSettings | undefined {
  const { auth = {}, revoke = {} } = settings
  if (auth.revokePath === undefined) return undefined
  const standard = tokenEndpoint(settings)
  return {
    host: auth.revokeHost ?? standard.host,
    path: auth.revokePath,
    method: revoke.method ?? 'POST',
    bodyFormat: revoke.bodyFormat ?? standard.bodyFormat,
    headers: settings.revokeHeaders,
    extra: settings.revokeParams,
    parameterNames: { ...standard.parameterNames, ...revoke.parameter_names },
    omitted: [...standard.omitted, ...(revoke.omit ?? [])],
  }
}

/** The refresh token ends the whole grant at most servers; a server may revoke access tokens alone. */
function typesToRevoke({ revoke = {} }: OAuth2Settings, { refreshToken }: TokenSet): readonly TokenType[] {
  if (revoke.token !== undefined)
    return revoke.token === 'refresh_token' && refreshToken === undefined ? [] : [revoke.token]
  return refreshToken === undefined ? ['access_token'] : ['refresh_token', 'access_token']
}

function textOf({ accessToken, refreshToken }: TokenSet, type: TokenType): string {
  return type === 'access_token' ? accessToken : (refreshToken ?? '')
}

/** `undefined` when the server does not revoke tokens of this type. */
function readRevocation(
  response: TokenResponse,
  { now }: Pick<TokenContext<never>, 'now'>,
): RevocationResult | undefined {
  const read = parseLooseBody(response)
  const code = errorCodeOf(read.body)
  if (code === UNSUPPORTED) return undefined
  const isUnknown = code !== undefined && UNKNOWN_TOKEN_CODES.has(code)
  return !isTokenError(read) || isUnknown || response.status === 404
    ? { kind: 'revoked' }
    : tokenErrorFrom(read, 'integration', now())
}
