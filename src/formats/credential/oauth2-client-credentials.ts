import { z } from 'zod'
import { withSchema } from '../format.ts'
import type { CredentialFormat } from './credential.ts'
import { fieldList } from './field.ts'
import { oauth2Keys } from './oauth2-keys.ts'
import { compileTokenEndpoint, scopeParam, tokenPath } from './oauth2-request.ts'
import type { CompileTokenRules } from './token.ts'
import { contextPaths } from './token-keys.ts'

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
    verification: parsed.verification,
    token: clientCredentialsTokenRules(parsed),
  })),
}

/** The same request every time: there is no refresh token (RFC 6749 §4.4.3), and one that is given is not used. */
function clientCredentialsTokenRules(parsed: z.output<typeof clientCredentialsConfig>): CompileTokenRules {
  const clientOwner = parsed.client?.id === undefined ? 'account' : 'integration'
  const grant = { path: tokenPath(parsed), extra: parsed.tokenParams, clientOwner } as const
  return (compileRequest) => {
    const ask = compileTokenEndpoint(parsed, grant, compileRequest)
    return {
      contextFromToken: contextPaths(parsed.context_from_token),
      canRequestToken: () => true,
      requestToken: (tools, scope) =>
        ask(tools, scope, { grant_type: 'client_credentials', ...scopeParam(parsed) }, undefined),
    }
  }
}
