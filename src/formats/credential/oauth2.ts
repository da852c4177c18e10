import { z } from 'zod'
import { parsing } from '../format.ts'
import { fieldPath, templateMap } from '../vocabulary.ts'
import type { CredentialFormat } from './credential.ts'
import { fieldList } from './field.ts'
import { oauth2Keys } from './oauth2-keys.ts'

const config = z.strictObject({
  ...oauth2Keys,
  pkce: z.boolean().default(true).describe('Proof key for code exchange, S256.'),
  authorizeParams: templateMap().optional().describe('Further parameters of the authorisation redirect.'),
  fields: fieldList().default([]).describe('Asked before the redirect, for example a subdomain.'),
  token_response: z
    .strictObject({
      access_token: fieldPath().optional().describe('Default: access_token.'),
      refresh_token: fieldPath().optional().describe('Default: refresh_token.'),
      expires_in: fieldPath().optional().describe('Default: expires_in.'),
    })
    .optional()
    .describe('Paths in the token answer where they are not the standard ones.'),
  context_from_token: z
    .record(z.string(), fieldPath())
    .optional()
    .describe('Context keys filled from the token answer.'),
  context_from_redirect: z
    .record(z.string(), z.string())
    .optional()
    .describe('Context keys filled from parameters of the redirect.'),
})

/** `oauth2`: authorisation code grant (RFC 6749 §4.1). */
export const oauth2: CredentialFormat = {
  format: 'oauth2',
  authenticationMethod: 'oauth2',
  summary: 'OAuth 2.0 with redirect; the token is `{{oauth.token.access_token}}`.',
  config,
  readiness: 'data',
  compile: parsing(config, ({ fields }) => ({ format: 'oauth2', fields, verification: undefined })),
}
