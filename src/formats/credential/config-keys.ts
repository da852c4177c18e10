import { z } from 'zod'
import { type DotPath, parseDotPath } from '../../base/index.ts'
import { requestSchema } from '../request-keys.ts'
import {
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

/** Root names of expressions over token responses: the last one as `response` and its members, all of them as `steps`. */
export const TOKEN_ROOTS = ['response', 'status', 'headers', 'body', 'steps', 'credentials', 'context'] as const

/** `verification`, a setting of all credential formats. */
export const verification = {
  verification: requestSchema
    .optional()
    .describe('A request that must succeed before the account counts as connected.'),
} as const

/** `context_from_token`, a setting of all formats with a token response. */
export const contextFromToken = {
  context_from_token: mapOf(nameText(), fieldPath())
    .optional()
    .describe('Context keys filled from the token answer. Texts, numbers and booleans only, and never a token.'),
} as const

/** The mapping with its paths parsed. */
export function contextPaths(
  mapping: Readonly<Record<string, string>> | undefined,
): readonly (readonly [string, DotPath])[] {
  return Object.entries(mapping ?? {}).map(([key, path]) => [key, parseDotPath(path)] as const)
}

/** Settings of all OAuth 2 grants. */
export const oauth2Keys = {
  client: z
    .strictObject({
      id: templateText().optional().describe('Client id. Default: `{{client_id}}`.'),
      secret: secretText().optional().describe('Client secret. Default: `{{client_secret}}`.'),
      private_key: secretText()
        .optional()
        .describe('For private_key_jwt: the private key in PEM. Default: `{{private_key}}`.'),
      key_id: templateText().optional().describe('For private_key_jwt: `kid` of the assertion.'),
      algorithm: z.enum(JWT_ALGORITHMS).optional().describe('For private_key_jwt. Default: RS256.'),
    })
    .optional()
    .describe("The application at the third party; usually given by the environment's override."),
  auth: z
    .strictObject({
      tokenHost: urlText()
        .optional()
        .describe("Base address of the token endpoint. Default: the integration's base_url."),
      tokenPath: templateText().optional().describe('Default: /oauth/token.'),
      refreshPath: templateText().optional().describe('Default: tokenPath.'),
      authorizeHost: urlText().optional().describe('Default: tokenHost.'),
      authorizePath: templateText().optional().describe('Default: /oauth/authorize.'),
      revokePath: templateText().optional().describe('Without it tokens are not revoked upstream.'),
    })
    .optional()
    .describe('Addresses of the authorisation server.'),
  options: z
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
      bodyFormat: z.enum(['form', 'json']).optional().describe('Format of token requests. Default: form.'),
    })
    .optional()
    .describe('Options of token requests.'),
  scope: listOf(rawText()).optional().describe('Scopes that are always requested.'),
  optional_scope: listOf(rawText()).optional().describe('Scopes that the customer or an override may add.'),
  tokenParams: templateMap().optional().describe('Further parameters of the token request.'),
  refreshParams: templateMap().optional().describe('Further parameters of the refresh request.'),
  tokenHeaders: headerMap()
    .optional()
    .describe("Further headers of both; the integration's own headers are not sent to the token endpoint."),
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
    })
    .optional()
    .describe('Paths in the token answer where they are not the standard ones.'),
  ...contextFromToken,
  ...verification,
  documentation_link: webAddress().optional().describe('Where the customer reads how to connect.'),
} as const

const settings = z.strictObject(oauth2Keys)

/** The parsed settings of an OAuth 2 grant. */
export type OAuth2Settings = z.output<typeof settings>
