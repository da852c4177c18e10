import { z } from 'zod'
import { parsing } from '../format.ts'
import type { CredentialFormat } from './credential.ts'
import { fieldList } from './field.ts'
import { oauth2Keys } from './oauth2-keys.ts'

const config = z.strictObject({
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
  summary: "OAuth 2.0 without redirect: the customer's client id and secret are exchanged for a token.",
  config,
  readiness: 'announced',
  compile: parsing(config, ({ fields }) => ({ format: 'oauth2_client_credentials', fields, verification: undefined })),
}
