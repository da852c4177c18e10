import { z } from 'zod'
import { withSchema } from '../format.ts'
import { authorizationCodeRules } from './authorization-code.ts'
import { connectionOf, contextPaths } from './config-keys.ts'
import type { CompileTokenRules, CredentialFormat, TokenRules } from './credential.ts'
import { fieldList } from './fields.ts'
import { compileLifetimes } from './lifetimes.ts'
import { type OAuth2Config, oauth2Config, oauth2Keys } from './oauth2-keys.ts'
import { revocationOf } from './revocation.ts'
import { compileTokenRequest, refreshEndpoint, scopeParam, tokenEndpoint } from './token-endpoint.ts'

/** `oauth2`: authorization code grant (RFC 6749 §4.1); existing tokens may be imported. */
export const oauth2: CredentialFormat = {
  format: 'oauth2',
  authenticationMethod: 'oauth2',
  summary:
    'OAuth 2.0 with consent: the customer is sent to the third party, and the code of the redirect is exchanged for a token, `{{oauth.token.access_token}}`. Tokens that were granted elsewhere may be imported instead, as `access_token`, `refresh_token` and `expires_in` beside the fields. The address of the redirect is `{{connection.redirect_uri}}`.',
  config: oauth2Config,
  compile: withSchema(oauth2Config, (parsed) => ({
    format: 'oauth2',
    fields: parsed.fields,
    isTokenImported: true,
    authorization: authorizationCodeRules(parsed),
    token: consentTokenRules(parsed),
    ...connectionOf(parsed),
    ...compileLifetimes(parsed.lifetimes),
  })),
}

/** The refresh grant (RFC 6749 §6), or the client's own credentials where a consent needs no code. */
function consentTokenRules(parsed: OAuth2Config): CompileTokenRules {
  return (compileRequest) => ({
    contextFromToken: contextPaths(parsed.context_from_token),
    ...revocationOf(parsed, compileRequest),
    ...(parsed.grant === 'client_credentials'
      ? clientCredentialsRequest(parsed, 'integration', compileRequest)
      : refreshRequest(parsed, compileRequest)),
  })
}

type RequestRules<Request> = Pick<TokenRules<Request>, 'canRequestToken' | 'requestToken'>
type CompileTokenCall<Request> = Parameters<typeof compileTokenRequest<Request>>[3]

function refreshRequest<Request>(
  parsed: OAuth2Config,
  compileRequest: CompileTokenCall<Request>,
): RequestRules<Request> {
  const ask = compileTokenRequest(parsed, refreshEndpoint(parsed), 'integration', compileRequest)
  const name = parsed.refresh?.token ?? 'refresh_token'
  return {
    canRequestToken: (previous) =>
      name === 'access_token' ? previous !== undefined : previous?.refreshToken !== undefined,
    requestToken: (context, scope, previous) => {
      const value = name === 'access_token' ? previous?.accessToken : previous?.refreshToken
      if (value === undefined) throw new Error('a token without a refresh token cannot be refreshed')
      return ask(context, scope, { grant_type: 'refresh_token', [name]: value }, previous)
    },
  }
}

const clientCredentialsConfig = z.strictObject({
  ...oauth2Keys,
  fields: fieldList()
    .default([
      { name: 'client_id', label: 'Client ID', type: 'text', required: true },
      { name: 'client_secret', label: 'Client secret', type: 'password', required: true },
    ])
    .describe('What the customer fills in. Default: client_id and client_secret.'),
})

/** `oauth2_client_credentials`: RFC 6749 §4.4. */
export const oauth2ClientCredentials: CredentialFormat = {
  format: 'oauth2_client_credentials',
  authenticationMethod: 'oauth2_client_credentials',
  summary:
    "OAuth 2.0 without redirect: the customer's client id and secret are exchanged for a token, `{{oauth.token.access_token}}`.",
  config: clientCredentialsConfig,
  compile: withSchema(clientCredentialsConfig, (parsed) => ({
    format: 'oauth2_client_credentials',
    fields: parsed.fields,
    token: clientCredentialsTokenRules(parsed),
    ...connectionOf(parsed),
    ...compileLifetimes(parsed.lifetimes),
  })),
}

function clientCredentialsTokenRules(parsed: z.output<typeof clientCredentialsConfig>): CompileTokenRules {
  const clientOwner = parsed.client?.id === undefined ? 'account' : 'integration'
  return (compileRequest) => ({
    contextFromToken: contextPaths(parsed.context_from_token),
    ...revocationOf(parsed, compileRequest),
    ...clientCredentialsRequest(parsed, clientOwner, compileRequest),
  })
}

/** Always the same request: there is no refresh token (RFC 6749 §4.4.3); one in the response is ignored. */
function clientCredentialsRequest<Request>(
  parsed: z.output<typeof clientCredentialsConfig>,
  clientOwner: 'account' | 'integration',
  compileRequest: CompileTokenCall<Request>,
): RequestRules<Request> {
  const ask = compileTokenRequest(parsed, tokenEndpoint(parsed), clientOwner, compileRequest)
  const params = { grant_type: 'client_credentials', ...scopeParam(parsed, parsed.scope ?? []) }
  return {
    canRequestToken: () => true,
    requestToken: (context, scope) => ask(context, scope, params, undefined),
  }
}
