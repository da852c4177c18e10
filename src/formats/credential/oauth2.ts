import { z } from 'zod'
import { withSchema } from '../format.ts'
import { listOf, mapOf, nameText, plainText, templateMap } from '../schema-types.ts'
import { contextPaths, oauth2Keys } from './config-keys.ts'
import type { CompileTokenRules, CredentialFormat } from './credential.ts'
import { fieldList } from './fields.ts'
import { compileTokenEndpoint, scopeParam, tokenPath } from './token-endpoint.ts'

const authorizeQuirks = z.strictObject({
  parameter_names: mapOf(z.enum(['client_id', 'redirect_uri', 'response_type', 'scope', 'state']), nameText())
    .optional()
    .describe('Other names of standard parameters, for example {"client_id": "client_key"}.'),
  omit: listOf(z.enum(['redirect_uri', 'response_type', 'scope']))
    .optional()
    .describe('Parameters that are not sent.'),
  raw: listOf(nameText()).optional().describe('Parameters whose values are sent as they are, not percent-encoded.'),
  fragment: plainText().optional().describe('Fragment of the address, after `#`.'),
  code_parameter: nameText().optional().describe('Where the redirect brings the code. Default: code.'),
})

const oauth2Config = z.strictObject({
  ...oauth2Keys,
  pkce: z.boolean().default(true).describe('Proof key for code exchange, S256.'),
  authorizeParams: templateMap().optional().describe('Further parameters of the authorisation redirect.'),
  authorize: authorizeQuirks.optional().describe('Where an authorisation address departs from the standard.'),
  fields: fieldList().default([]).describe('Asked before the redirect, for example a subdomain.'),
  context_from_redirect: mapOf(nameText(), nameText())
    .optional()
    .describe('Context keys filled from parameters of the redirect.'),
})

/** `oauth2`: authorization code grant (RFC 6749 §4.1); existing tokens are imported and refreshed. */
export const oauth2: CredentialFormat = {
  format: 'oauth2',
  authenticationMethod: 'oauth2',
  summary:
    'OAuth 2.0 with consent. Tokens that were granted elsewhere are imported as `access_token`, `refresh_token` and `expires_in` beside the fields, and refreshed from then on; the token is `{{oauth.token.access_token}}`. There is no redirect yet.',
  config: oauth2Config,
  compile: withSchema(oauth2Config, (parsed) => ({
    format: 'oauth2',
    fields: parsed.fields,
    isTokenImported: true,
    verification: parsed.verification,
    token: refreshTokenRules(parsed),
  })),
}

/** The refresh grant (RFC 6749 §6). */
function refreshTokenRules(parsed: z.output<typeof oauth2Config>): CompileTokenRules {
  const path = parsed.auth?.refreshPath ?? tokenPath(parsed)
  const grant = { path, extra: parsed.refreshParams, clientOwner: 'integration' } as const
  return (compileRequest) => {
    const ask = compileTokenEndpoint(parsed, grant, compileRequest)
    return {
      contextFromToken: contextPaths(parsed.context_from_token),
      canRequestToken: (previous) => previous?.refreshToken !== undefined,
      requestToken: (context, scope, previous) => {
        const refresh_token = previous?.refreshToken
        if (refresh_token === undefined) throw new Error('a token without a refresh token cannot be refreshed')
        return ask(context, scope, { grant_type: 'refresh_token', refresh_token }, previous)
      },
    }
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
    verification: parsed.verification,
    token: clientCredentialsTokenRules(parsed),
  })),
}

/** Always the same request: there is no refresh token (RFC 6749 §4.4.3); one in the response is ignored. */
function clientCredentialsTokenRules(parsed: z.output<typeof clientCredentialsConfig>): CompileTokenRules {
  const clientOwner = parsed.client?.id === undefined ? 'account' : 'integration'
  const grant = { path: tokenPath(parsed), extra: parsed.tokenParams, clientOwner } as const
  return (compileRequest) => {
    const ask = compileTokenEndpoint(parsed, grant, compileRequest)
    return {
      contextFromToken: contextPaths(parsed.context_from_token),
      canRequestToken: () => true,
      requestToken: (context, scope) =>
        ask(context, scope, { grant_type: 'client_credentials', ...scopeParam(parsed) }, undefined),
    }
  }
}
