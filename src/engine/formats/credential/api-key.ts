import { z } from 'zod'
import { withSchema } from '../format.ts'
import { webAddress } from '../schema-types.ts'
import { connectionKeys, connectionOf } from './config-keys.ts'
import type { CredentialFormat } from './credential.ts'
import { fieldList } from './fields.ts'

const config = z
  .strictObject({
    fields: fieldList()
      .default([{ name: 'api_key', label: 'API key', type: 'password', required: true }])
      .describe('What the customer fills in. Default: one password field `api_key`.'),
    documentation_link: webAddress().optional().describe('Where the customer reads how to get the key.'),
    ...connectionKeys,
  })
  .prefault({})

/** `api_key`: fields that the customer fills in; two fields and authorization `basic` make HTTP Basic. */
export const apiKey: CredentialFormat = {
  format: 'api_key',
  authenticationMethod: 'api_key',
  summary: 'Fields that the customer fills in. Every field is a placeholder of its name.',
  config,
  compile: withSchema(config, (parsed) => ({ format: 'api_key', fields: parsed.fields, ...connectionOf(parsed) })),
}
