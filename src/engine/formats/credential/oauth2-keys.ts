import { z } from 'zod'
import {
  expressionText,
  fieldPath,
  headerMap,
  listOf,
  mapOf,
  nameText,
  rawText,
  secretText,
  templateMap,
  templateText,
  urlText,
  webAddress,
} from '../schema-types.ts'
import { JWT_ALGORITHMS } from '../sign-jwt.ts'
import { authorize, contextFromRedirect } from './authorize-keys.ts'
import { connectionKeys, contextFromToken } from './config-keys.ts'
import { fieldList } from './fields.ts'
import { lifetimes } from './lifetimes.ts'

/** Parameters of requests to a token endpoint that have standard names. */
export const TOKEN_PARAMETERS = [
  'grant_type',
  'code',
  'redirect_uri',
  'code_verifier',
  'refresh_token',
  'access_token',
  'scope',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'token',
  'token_type_hint',
] as const

/** Root names of the expressions of `token.values`. */
const VALUE_ROOTS = ['params', 'credentials', 'context', 'values', 'now'] as const

const parameterNames = mapOf(z.enum(TOKEN_PARAMETERS), nameText())
  .optional()
  .describe('Other names of standard parameters, for example {"client_id": "client_key"}.')
const omit = listOf(z.enum(TOKEN_PARAMETERS)).optional().describe('Standard parameters that are not sent.')
const bodyFormat = z.enum(['form', 'json', 'query']).optional()

const client = z
  .strictObject({
    id: templateText().optional().describe('Client id. Default: `{{client_id}}`.'),
    secret: secretText().optional().describe('Client secret. Default: `{{client_secret}}`.'),
    private_key: secretText()
      .optional()
      .describe('For private_key_jwt: the private key in PEM. Default: `{{private_key}}`.'),
    key_id: templateText().optional().describe('For private_key_jwt: `kid` of the assertion.'),
    algorithm: z.enum(JWT_ALGORITHMS).optional().describe('For private_key_jwt. Default: RS256.'),
    claims: templateMap()
      .optional()
      .describe('For private_key_jwt: claims over iss, sub, aud, jti, iat and exp, for example another `aud`.'),
  })
  .optional()
  .describe("The application at the third party; usually given by the environment's override.")

const auth = z
  .strictObject({
    tokenHost: urlText()
      .optional()
      .describe("Base address of the token endpoint. Default: the integration's base_url."),
    tokenPath: templateText().optional().describe('Default: /oauth/token.'),
    refreshHost: urlText().optional().describe('Default: tokenHost.'),
    refreshPath: templateText().optional().describe('Default: tokenPath.'),
    authorizeHost: urlText().optional().describe('Default: tokenHost.'),
    authorizePath: templateText()
      .optional()
      .describe('Default: /oauth/authorize. May hold a query, and a `#` of a single-page application.'),
    revokeHost: urlText().optional().describe('Default: tokenHost.'),
    revokePath: templateText().optional().describe('Without it tokens are not revoked upstream.'),
    issuer: templateText()
      .optional()
      .describe('Issuer of the authorisation server. An answer with another `iss` is rejected (RFC 9207).'),
    issuerRequired: z
      .boolean()
      .optional()
      .describe(
        'Whether an answer without `iss` is rejected too: the server announces authorization_response_iss_parameter_supported. Default: false.',
      ),
  })
  .optional()
  .describe('Addresses of the authorisation server.')

const options = z
  .strictObject({
    scopeSeparator: z.string().max(8).optional().describe('Default: a space.'),
    authorizationMethod: z
      .enum(['header', 'body', 'private_key_jwt'])
      .optional()
      .describe(
        'How the client identifies itself: HTTP Basic, parameters, or a signed assertion (RFC 7523 §2.2; it names tokenHost, which then has to be there). Default: header.',
      ),
    credentialsEncodingMode: z
      .enum(['strict', 'loose'])
      .optional()
      .describe('Whether id and secret are form-encoded inside HTTP Basic (RFC 6749 §2.3.1). Default: strict.'),
    bodyFormat: bodyFormat.describe(
      'Where and how parameters of token requests are written; `query`: in the address. Default: form.',
    ),
    sendEmpty: z
      .boolean()
      .optional()
      .describe('Whether parameters with an empty value are sent. Default: false, they are left out.'),
  })
  .optional()
  .describe('Options of token requests.')

const token = z
  .strictObject({
    method: z.enum(['POST', 'GET']).optional().describe('Default: POST. With GET parameters are in the address.'),
    parameter_names: parameterNames,
    omit,
    values: mapOf(nameText(), expressionText(VALUE_ROOTS))
      .optional()
      .describe(
        'JSONata evaluated before a token request, in order, for signatures: `{{args.values.<name>}}` in tokenParams, refreshParams and tokenHeaders. Roots: `params` (the standard parameters), `credentials`, `context`, `env`, `values` (those before), `now` (milliseconds).',
      ),
  })
  .optional()
  .describe('Where token requests depart from the standard.')

const refresh = z
  .strictObject({
    method: z.enum(['POST', 'GET']).optional().describe('Default: that of `token`.'),
    token: z
      .enum(['refresh_token', 'access_token'])
      .optional()
      .describe(
        'Which token is exchanged for the next one, sent as the parameter of its name. Default: refresh_token.',
      ),
    bodyFormat: bodyFormat.describe('Default: that of `options`.'),
    parameter_names: parameterNames.describe('Over those of `token`.'),
    omit: omit.describe('Beside those of `token`.'),
  })
  .optional()
  .describe('Where refresh requests depart from token requests.')

const revoke = z
  .strictObject({
    method: z.enum(['POST', 'GET', 'DELETE']).optional().describe('Default: POST.'),
    token: z
      .enum(['refresh_token', 'access_token'])
      .optional()
      .describe('Which token is revoked. Default: the refresh token where there is one.'),
    bodyFormat: bodyFormat.describe('Default: that of `options`.'),
    parameter_names: parameterNames.describe('Over those of `token`.'),
    omit: omit.describe('Beside those of `token`.'),
  })
  .optional()
  .describe('Where revocations depart from RFC 7009.')

/** `extend`, a setting of grants with consent. */
const extend = z
  .strictObject({
    host: urlText().optional().describe('Default: tokenHost.'),
    path: templateText().describe('Path of the second exchange.'),
    method: z.enum(['POST', 'GET']).optional().describe('Default: that of `token`.'),
    params: templateMap().optional().describe('Further parameters, for example `grant_type`.'),
    parameter_names: parameterNames.describe('Over those of `token`.'),
    omit: omit.describe('Beside those of `token`.'),
  })
  .optional()
  .describe(
    'A second request right after the exchange, which exchanges the access token for one that lives longer. It is sent as `access_token`.',
  )

/** Settings of all OAuth 2 grants. */
export const oauth2Keys = {
  client,
  auth,
  options,
  scope: listOf(rawText()).optional().describe('Scopes that are always requested.'),
  optional_scope: listOf(rawText()).optional().describe('Scopes that the customer or an override may add.'),
  tokenParams: templateMap().optional().describe('Further parameters of the token request.'),
  refreshParams: templateMap().optional().describe('Further parameters of the refresh request.'),
  revokeParams: templateMap().optional().describe('Further parameters of the revocation.'),
  tokenHeaders: headerMap()
    .optional()
    .describe(
      "Further headers of token and refresh requests; the integration's own headers are not sent to the token endpoint.",
    ),
  revokeHeaders: headerMap().optional().describe('Further headers of the revocation.'),
  token,
  refresh,
  revoke,
  tokenExpiryDuration: z
    .string()
    .max(9)
    .regex(/^[1-9]\d{0,8}$/, { error: 'must be a number of seconds, such as "3600"' })
    .optional()
    .describe('Lifetime in seconds when the answer names none.'),
  token_response: z
    .strictObject({
      access_token: fieldPath().optional().describe('Default: access_token.'),
      refresh_token: fieldPath().optional().describe('Default: refresh_token.'),
      expires_in: fieldPath().optional().describe('Default: expires_in.'),
      expires_in_unit: z.enum(['seconds', 'milliseconds']).optional().describe('Default: seconds.'),
      scope: fieldPath().optional().describe('Granted scopes, a list or a text. Default: scope.'),
    })
    .optional()
    .describe('Paths in the token answer where they are not the standard ones.'),
  ...contextFromToken,
  ...connectionKeys,
  lifetimes,
  documentation_link: webAddress().optional().describe('Where the customer reads how to connect.'),
} as const

const settings = z.strictObject(oauth2Keys)

/** The parsed settings of an OAuth 2 grant. */
export type OAuth2Settings = z.output<typeof settings>

/** The parsed settings of a second exchange. */
export type ExtendSettings = NonNullable<z.output<typeof extend>>

export const oauth2Config = z.strictObject({
  ...oauth2Keys,
  grant: z
    .enum(['authorization_code', 'client_credentials'])
    .default('authorization_code')
    .describe(
      "What follows the consent: an exchange of the code, or, where the redirect confirms the consent alone, tokens by the client's own credentials.",
    ),
  extend,
  pkce: z
    .union([z.boolean(), z.literal('plain')])
    .default(true)
    .describe('Proof key for code exchange: S256, or `plain` for servers that know that alone; false sends none.'),
  required_scope: listOf(rawText())
    .optional()
    .describe('Scopes without which the account is not connected, when the answer names the granted ones.'),
  authorizeParams: templateMap()
    .optional()
    .describe('Further parameters of the authorisation redirect; `{{random}}` is a random text for a nonce.'),
  authorize,
  fields: fieldList().default([]).describe('Asked before the redirect, for example a subdomain.'),
  ...contextFromRedirect,
})

/** The parsed settings of `oauth2`. */
export type OAuth2Config = z.output<typeof oauth2Config>
