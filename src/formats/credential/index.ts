/**
 * `credentials`: how accounts are connected. The registry of its formats.
 *
 * A definition writes one `{format, config}`, or a map from format to `{config, label?}` when the customer may choose.
 *
 * @module
 */

import { z } from 'zod'
import { isJsonObject, type Json } from '../../base/index.ts'
import { formatUnion, getFormat } from '../format.ts'
import { plainText } from '../schema-types.ts'
import { apiKey } from './api-key.ts'
import type { AuthenticationMethod, CredentialChoice, CredentialFormat, CredentialPlan } from './credential.ts'
import { jwt } from './jwt.ts'
import { oauth1Consent } from './oauth1.ts'
import { oauth2, oauth2ClientCredentials } from './oauth2.ts'
import { vendorOauth } from './vendor-oauth.ts'

export const CREDENTIAL_FORMATS: readonly CredentialFormat[] = [
  apiKey,
  oauth2,
  oauth2ClientCredentials,
  oauth1Consent,
  vendorOauth,
  jwt,
]

const credentialMap = z.strictObject(
  Object.fromEntries(CREDENTIAL_FORMATS.map((entry) => [entry.format, mapEntry(entry).optional()])),
)

/** Both shapes of `credentials`. */
export const credentialsSchema = z
  .union([formatUnion('Credential', CREDENTIAL_FORMATS), credentialMap])
  .meta({ id: 'Credentials' })

/** The credential formats of a checked config, in its order, for both shapes. */
export function listCredentials(credentials: Json | undefined): readonly CredentialChoice[] {
  if (!isJsonObject(credentials)) return []
  const { format, config } = credentials
  if (typeof format === 'string') return [{ format, config }]
  return Object.entries(credentials).flatMap(([name, entry]) => {
    if (!isJsonObject(entry)) return []
    return [{ format: name, config: entry.config, label: typeof entry.label === 'string' ? entry.label : undefined }]
  })
}

/** The authentication method that accounts connected by a format have; `undefined` for an unknown format. */
export function authenticationMethodOfFormat(format: string): AuthenticationMethod | undefined {
  return CREDENTIAL_FORMATS.find((entry) => entry.format === format)?.authenticationMethod
}

/** Compiles one of the credential formats of a definition. */
export function compileCredential({ format, config }: CredentialChoice): CredentialPlan {
  return getFormat(CREDENTIAL_FORMATS, format).compile(config)
}

/** An entry of the map; it may repeat its key as `format`. */
function mapEntry(entry: CredentialFormat) {
  return z
    .strictObject({
      format: z.literal(entry.format).optional(),
      label: plainText().optional().describe('Shown where the customer picks one of several.'),
      config: entry.config,
    })
    .describe(entry.summary)
}
