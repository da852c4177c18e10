import { z } from 'zod'
import { parsing } from '../format.ts'
import { requestSchema } from '../request-keys.ts'
import { expressionText, plainText } from '../vocabulary.ts'
import type { CredentialFormat } from './credential.ts'
import { fieldList } from './field.ts'

const requestSteps = z.union([requestSchema, z.array(requestSchema).min(1).max(10)])

const config = z.strictObject({
  fields: fieldList().default([]).describe('What the customer fills in.'),
  token_request: requestSteps.describe('One request or several, the last of which answers with the token.'),
  refresh_request: requestSteps.optional().describe('Default: token_request again.'),
  token_expression: expressionText().describe('JSONata over the answer that returns the access token.'),
  refresh_token_expression: expressionText().optional().describe('JSONata that returns the refresh token.'),
  expires_in_expression: expressionText().optional().describe('Lifetime in seconds.'),
  documentation_link: plainText().optional().describe('Where the customer reads how to connect.'),
})

/** `vendor_oauth`: exchanges that no standard describes, written as requests. */
export const vendorOauth: CredentialFormat = {
  format: 'vendor_oauth',
  authenticationMethod: 'vendor_oauth',
  summary: "A login or token exchange of the vendor's own, as request steps.",
  config,
  readiness: 'announced',
  compile: parsing(config, ({ fields }) => ({ format: 'vendor_oauth', fields, verification: undefined })),
}
