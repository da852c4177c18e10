/**
 * `credentials`: how accounts are connected. The registry of its formats.
 *
 * A definition writes one `{format, config}`, or a map of `{format?, label?, config}` when the customer may choose. A key of the
 * map that is the name of a format says the format; under any other key `format` does, so that one format can be there twice.
 *
 * @module
 */
import { z } from 'zod'
import { suggestOneOf } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json } from '../../../foundation/json/index.ts'
import { CONFIG_DESCRIPTION, FORMAT_DESCRIPTION, type FormatChoice, formatUnion, getFormat } from '../format.ts'
import { plainText, refineWith } from '../schema-types.ts'
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

/** As the columns have it that keep a key. */
const CREDENTIAL_KEY = /^[a-z0-9_]{1,64}$/
const CREDENTIAL_KEY_LENGTH_MAX = 64
/** Keys of the other shape. */
const RESERVED_KEYS: readonly string[] = ['format', 'config']
/** Most credentials of a definition: the customer chooses from all of them. */
const CREDENTIALS_MAX = 20

const credentialMap = z
  .object(Object.fromEntries(CREDENTIAL_FORMATS.map((entry) => [entry.format, mapEntry(entry).optional()])))
  .catchall(namedEntry())
  .superRefine(refineWith(findKeysProblem, 'key'))
  .meta({
    maxProperties: CREDENTIALS_MAX,
    propertyNames: { pattern: CREDENTIAL_KEY.source, maxLength: CREDENTIAL_KEY_LENGTH_MAX },
  })

/** Both shapes of `credentials`. */
export const credentialsSchema = z
  .union([formatUnion('Credential', CREDENTIAL_FORMATS), credentialMap])
  .meta({ id: 'Credentials' })

/** The credentials of a checked config, in its order, for both shapes. */
export function listCredentials(credentials: Json | undefined): readonly CredentialChoice[] {
  if (!isJsonObject(credentials)) return []
  const { format, config } = credentials
  if (typeof format === 'string') return [{ key: format, format, config }]
  return Object.entries(credentials).flatMap(([key, entry]) => {
    if (!isJsonObject(entry)) return []
    const { format: named, label } = entry
    return [
      {
        key,
        format: typeof named === 'string' ? named : key,
        config: entry.config,
        label: typeof label === 'string' ? label : undefined,
      },
    ]
  })
}

/** The authentication method that accounts connected by a format have; `undefined` for an unknown format. */
export function authenticationMethodOfFormat(format: string): AuthenticationMethod | undefined {
  return CREDENTIAL_FORMATS.find((entry) => entry.format === format)?.authenticationMethod
}

/** Compiles one of the credential formats of a definition. */
export function compileCredential({ format, config }: FormatChoice): CredentialPlan {
  return getFormat(CREDENTIAL_FORMATS, format).compile(config)
}

/** An entry of the map under the name of a format, which it may repeat as `format`. */
function mapEntry(entry: CredentialFormat) {
  return z
    .strictObject({ format: z.literal(entry.format).optional().describe(FORMAT_DESCRIPTION), ...entryKeys(entry) })
    .describe(entry.summary)
}

/** An entry under any other key. */
function namedEntry() {
  const options = CREDENTIAL_FORMATS.map((entry) =>
    z
      .strictObject({ format: z.literal(entry.format).describe(FORMAT_DESCRIPTION), ...entryKeys(entry) })
      .describe(entry.summary),
  )
  const [first, ...rest] = options
  if (first === undefined) throw new Error('there is a credential format')
  return z
    .discriminatedUnion('format', [first, ...rest], { error: describeMissingFormat })
    .meta({ id: 'NamedCredential' })
}

function entryKeys({ config }: CredentialFormat) {
  return {
    label: plainText().optional().describe('Shown where the customer picks one of several.'),
    config: config.describe(CONFIG_DESCRIPTION),
  }
}

/** The message where an entry under a key that is no format has no `format`; the path ends with the key and `format`. */
function describeMissingFormat({ input, path }: z.core.$ZodRawIssue): string | undefined {
  if (!isJsonObject(input as Json) || (input as { format?: unknown }).format !== undefined) return undefined
  const names = CREDENTIAL_FORMATS.map(({ format }) => format)
  const key = String(path?.at(-2) ?? '')
  return `is required, because the key ${key} is not the name of a format${suggestOneOf(key, names)}`
}

function findKeysProblem(map: object): string | undefined {
  const keys = Object.keys(map)
  if (keys.length > CREDENTIALS_MAX) return `must have at most ${CREDENTIALS_MAX} entries`
  const reserved = keys.find((key) => RESERVED_KEYS.includes(key))
  if (reserved !== undefined) return `must not have the key ${reserved}, which is part of a single credential`
  const wrong = keys.find((key) => !CREDENTIAL_KEY.test(key))
  return wrong === undefined
    ? undefined
    : `must have keys of at most ${CREDENTIAL_KEY_LENGTH_MAX} lower-case letters, digits and underscores, not ${JSON.stringify(wrong.slice(0, CREDENTIAL_KEY_LENGTH_MAX))}`
}
