import { z } from 'zod'
import { parsing } from '../format.ts'
import { requestSchema } from '../request-keys.ts'
import { JWT_ALGORITHMS } from '../sign-jwt.ts'
import { expressionText, secretText, templateMap } from '../vocabulary.ts'
import type { CredentialFormat } from './credential.ts'
import { fieldList } from './field.ts'

const config = z.strictObject({
  fields: fieldList().default([]).describe("What the customer fills in, for example the service account's key."),
  algorithm: z.enum(JWT_ALGORITHMS).describe('Algorithm of the signature (RFC 7518).'),
  key: secretText().describe('Shared secret or private key in PEM.'),
  claims: templateMap().describe('Claims of the assertion; `iat` and `exp` are added unless they are given.'),
  ttl: z.int().min(1).max(86_400).default(3600).describe('Lifetime of the assertion in seconds.'),
  exchange: z
    .strictObject({
      request: requestSchema.describe('`{{args.assertion}}` holds the signed token.'),
      token_expression: expressionText().optional().describe('Default: access_token of the answer.'),
      expires_in_expression: expressionText().optional().describe('Default: expires_in of the answer.'),
    })
    .optional()
    .describe('Where the assertion is exchanged for an access token; without it the assertion is the token.'),
})

/** `jwt`: service accounts and apps that sign an assertion (RFC 7523). */
export const jwt: CredentialFormat = {
  format: 'jwt',
  authenticationMethod: 'vendor_oauth',
  summary: 'A signed assertion, sent as it is or exchanged for a token.',
  config,
  readiness: 'announced',
  compile: parsing(config, ({ fields }) => ({ format: 'jwt', fields, verification: undefined })),
}
