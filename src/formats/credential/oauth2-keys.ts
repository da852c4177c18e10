import { z } from 'zod'
import { plainText, secretText, templateMap, templateText, urlText } from '../vocabulary.ts'

/** Settings that every OAuth 2 grant shares. */
export const oauth2Keys = {
  client: z
    .strictObject({
      id: templateText().optional().describe('Client id.'),
      secret: secretText().optional().describe('Client secret.'),
    })
    .optional()
    .describe("The application at the third party; usually given by the environment's override."),
  auth: z
    .strictObject({
      tokenHost: urlText().optional().describe('Base address of the token endpoint.'),
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
        .describe('How the client identifies itself. Default: header.'),
      bodyFormat: z.enum(['form', 'json']).optional().describe('Format of token requests. Default: form.'),
    })
    .optional()
    .describe('How the server wants to be spoken to.'),
  scope: z.array(z.string()).optional().describe('Scopes that are always asked for.'),
  optional_scope: z.array(z.string()).optional().describe('Scopes that the customer or an override may add.'),
  tokenParams: templateMap().optional().describe('Further parameters of the token request.'),
  refreshParams: templateMap().optional().describe('Further parameters of the refresh request.'),
  tokenExpiryDuration: plainText().optional().describe('Lifetime in seconds when the answer names none.'),
  documentation_link: plainText().optional().describe('Where the customer reads how to connect.'),
} as const
