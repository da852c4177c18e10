import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { authorizationSchema } from '../formats/authorization/registry.ts'
import { credentialsSchema } from '../formats/credential/registry.ts'
import { paginationSchema } from '../formats/pagination/registry.ts'
import { queryArrayFormatSchema } from '../formats/request-keys.ts'
import {
  anyJson,
  expressionText,
  headerMap,
  listOf,
  mapOf,
  nameText,
  plainText,
  RESPONSE_ROOTS,
  rawText,
  templateMap,
  urlText,
  webAddress,
} from '../formats/schema-types.ts'
import { actionSchema } from './actions.ts'
import {
  budgetSchema,
  identifierText,
  rateLimitSchema,
  resourceSchema,
  responseBytesSchema,
  retrySchema,
  timeoutSchema,
} from './method-schema.ts'
import { webhookSchema } from './webhook-schema.ts'

const apiVersionSchema = z.strictObject({
  version: nameText().describe('What the definition calls, for example 2026-10 or orders v0.'),
  variable: nameText().optional().describe('Environment variable that chooses another version.'),
  ends_at: z.iso
    .date()
    .max(10)
    .optional()
    .describe('Day on which the third party ends it. Default: none is announced.'),
  note: plainText().optional().describe('What to do then, or what the third party says of it.'),
  documentation_link: webAddress().optional().describe('Where the third party announces the end of its versions.'),
})

/** Keys of an integration config. The same objects validate, give the types and are published as JSON Schema. */
const configKeys = {
  $schema: rawText()
    .optional()
    .describe('Address of the JSON Schema, by which an editor checks and completes the file. It changes nothing else.'),
  label: plainText().optional().describe('Human-readable name.'),
  description: plainText().optional().describe('What it is for, in a sentence or two, for the catalog.'),
  tags: listOf(rawText()).optional().describe('Words to find and group it by in the catalog.'),
  logo: webAddress().optional().describe('URL of the logo; square, 256x256 recommended.'),
  icon: webAddress().optional().describe('URL of a smaller monochrome icon.'),
  base_url: urlText()
    .optional()
    .describe('Base address of every method, for example https://{{subdomain}}.example.com/api.'),
  api_versions: listOf(apiVersionSchema)
    .optional()
    .describe('Versions of the API that are called, and when they end: `patchbay check` warns a year before.'),
  headers: headerMap().optional().describe('Sent with every request.'),
  query: templateMap().optional().describe('Query parameters of every request.'),
  query_array_format: queryArrayFormatSchema.optional(),
  credentials: credentialsSchema
    .optional()
    .describe('How accounts are connected: one {format, config}, or a map by format.'),
  authorization: authorizationSchema
    .nullish()
    .describe('How the credential is put on requests. Default: nothing is sent.'),
  pagination: paginationSchema.nullish().describe('How `list` methods are paged. Default: one page.'),
  rate_limit: rateLimitSchema.optional().describe('How an answer that rejects a request for its rate is recognised.'),
  retry: retrySchema.optional().describe('How often a request that failed is sent again.'),
  timeout: timeoutSchema.optional(),
  max_response_bytes: responseBytesSchema.optional(),
  budget: budgetSchema
    .optional()
    .describe('Requests that may be made per stretch of time, counted by every process together.'),
  concurrency: z.int().min(1).max(100).optional().describe('Requests of one account in flight at once.'),
  error_expression: expressionText(RESPONSE_ROOTS)
    .optional()
    .describe(
      'JSONata over every response: nothing means no error, else {status, message?, headers?, metadata?, result?}.',
    ),
  resources: mapOf(identifierText('resource'), resourceSchema).optional().describe('Resources by name.'),
  actions: mapOf(identifierText('action'), actionSchema)
    .optional()
    .describe(
      'Named steps; post_install, post_connect_user_form, refresh_token and validation hook into the life of an account.',
    ),
  tool_tags: mapOf(nameText(), listOf(rawText())).optional().describe('Tags by resource, for the tools listing.'),
  webhook: webhookSchema.optional().describe('How inbound webhooks of the third party are handled.'),
} as const

/** An integration config. */
export const configSchema = z.strictObject(configKeys).meta({ title: 'Integration config' })

/** Keys of an override only. */
const overrideOnlyKeys = {
  environment_variables: mapOf(nameText(), anyJson())
    .optional()
    .describe('Values of {{environment_variables.<KEY>}} and {{env.<KEY>}}.'),
} as const

/** A config with an override merged into it. */
export const resolvedSchema = z.strictObject({ ...configKeys, ...overrideOnlyKeys })

export type IntegrationConfig = z.output<typeof configSchema>

let cachedJsonSchema: JsonObject | undefined

/**
 * JSON Schema (draft 2020-12) of the integration config, made from the objects that validate it.
 *
 * It describes shapes only: placeholder names, expressions and rules between fields need `checkConfig`.
 */
export function integrationConfigSchema(): JsonObject {
  cachedJsonSchema ??= jsonSchemaOf(configSchema)
  return cachedJsonSchema
}

/** JSON Schema of the keys that an override has beside those of a definition. */
export function overrideKeysSchema(): JsonObject {
  return jsonSchemaOf(z.strictObject(overrideOnlyKeys))
}

function jsonSchemaOf(schema: z.ZodType): JsonObject {
  const plain = JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))) as Json
  if (!isJsonObject(plain)) throw new Error('the schema of a config is an object')
  return plain
}
