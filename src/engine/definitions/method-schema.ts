import { z } from 'zod'
import { validateExpression } from '../expressions/parse.ts'
import { authorizationSchema } from '../formats/authorization/registry.ts'
import { paginationSchema } from '../formats/pagination/registry.ts'
import { requestKeys } from '../formats/request-keys.ts'
import {
  anyJson,
  expressionText,
  fieldPath,
  findPathProblem,
  listOf,
  mapOf,
  nameText,
  plainText,
  RESPONSE_ROOTS,
  rawText,
  refineWith,
} from '../formats/schema-types.ts'
import { WRITING_METHODS } from './method-kinds.ts'

/** How a rate-limited response is recognised, and where it names the limit. */
export const rateLimitSchema = z
  .strictObject({
    is_rate_limited: expressionText(RESPONSE_ROOTS)
      .optional()
      .describe('JSONata; truthy marks the response. Default: status = 429.'),
    retry_after_header_expression: expressionText(RESPONSE_ROOTS)
      .optional()
      .describe('JSONata that returns the seconds to wait. Default: the Retry-After header.'),
    rate_limit_header_expression: expressionText(RESPONSE_ROOTS)
      .optional()
      .describe('JSONata that returns {limit, remaining, reset}, forwarded as RateLimit-* headers.'),
  })
  .meta({ id: 'RateLimit' })

/** Retry policy of one request. Durations in seconds. */
export const retrySchema = z
  .strictObject({
    max_attempts: z.int().min(1).max(10).default(6).describe('Requests in all, the first one included.'),
    max_elapsed: z
      .number()
      .min(0)
      .max(600)
      .default(30)
      .describe('No new attempt starts later than this after the first.'),
    base: z
      .number()
      .min(0)
      .max(60)
      .default(0.5)
      .describe('Upper bound of the first wait; the waits are drawn at random below it.'),
    factor: z.number().min(1).max(10).default(2).describe('Growth of the bound per attempt.'),
    max: z.number().min(0).max(300).default(30).describe('Highest bound of a wait.'),
    retry_unsafe: z.boolean().default(false).describe('Also repeat POST and PATCH, which may take effect twice.'),
  })
  .meta({ id: 'Retry' })

/** Longest request timeout: below the 30 seconds of a call, so that the call can still report a slow upstream. */
const TIMEOUT_SECONDS_MAX = 29

/** How long one request may take. */
export const timeoutSchema = z
  .number()
  .min(0.1)
  .max(TIMEOUT_SECONDS_MAX, {
    error: `must be at most ${TIMEOUT_SECONDS_MAX}: the call it is made for ends after 30 seconds`,
  })
  .describe('Seconds the API has for one whole answer; then the request has failed. Default: 20.')

const MIB = 1024 * 1024
/** Largest answer that a definition may allow. */
export const RESPONSE_BYTES_MAX = 64 * MIB
export const RESPONSE_BYTES_DEFAULT = 16 * MIB

/** How large one answer may be. */
export const responseBytesSchema = z
  .int()
  .min(1)
  .max(RESPONSE_BYTES_MAX)
  .describe(
    'Bytes of one answer, decompressed; a larger one is an error that is not tried again. Default: 16777216 (16 MiB), at most 67108864 (64 MiB). A streamed answer may have 5 GiB.',
  )

/** Proactive rate limits, shared by all calls to the upstream. */
export const budgetSchema = z
  .array(
    z.strictObject({
      limit: z.int().min(1).max(1_000_000).describe('Requests in any stretch of that length.'),
      per: z
        .union([z.int().min(1).max(86_400), z.enum(['second', 'minute', 'hour', 'day'])])
        .describe('Length of the stretch: a number of seconds, or a name.'),
      scope: z
        .enum(['account', 'tenant', 'integration'])
        .default('account')
        .describe('What shares the count: one account, all accounts of a tenant, or all of the installation.'),
      match: z
        .strictObject({
          resource: rawText().optional().describe('Only methods of this resource.'),
          method: rawText().optional().describe('Only methods of this name.'),
        })
        .optional()
        .describe('Which calls count. Default: all.'),
    }),
  )
  .max(10)
  .meta({ id: 'Budget' })

export type BudgetDefinition = z.output<typeof budgetSchema>

/** JSON Schema, stored unchanged and part of the tools listing. */
const jsonSchema = mapOf(nameText(), anyJson())

const responsePath = z
  .string()
  .min(1)
  .max(16_384, { abort: true })
  .superRefine(refineWith(findResponsePathProblem, 'response_path'))
  .describe(
    'Where the result is: a dotted path in the body, or JSONata over the body when it starts with $. Default: the body.',
  )

/** One method of a resource. */
const methodSchema = z
  .strictObject({
    ...requestKeys,
    response_path: responsePath.optional(),
    id_path: fieldPath().optional().describe('Path in a record to its identifier. Default: id.'),
    pagination: paginationSchema.nullish().describe("Instead of the integration's; `null` turns paging off."),
    authorization: authorizationSchema.nullish().describe("Instead of the integration's; `null` sends no credential."),
    rate_limit: rateLimitSchema.nullish().describe("Instead of the integration's; `null` restores the default rules."),
    retry: retrySchema.nullish().describe("Instead of the integration's."),
    timeout: timeoutSchema.nullish().describe("Instead of the integration's; `null` restores the default."),
    max_response_bytes: responseBytesSchema
      .nullish()
      .describe("Instead of the integration's; `null` restores the default of 16777216 (16 MiB). At most 67108864."),
    budget: budgetSchema.nullish().describe("Instead of the integration's; `null` counts none."),
    error_expression: expressionText(RESPONSE_ROOTS)
      .nullish()
      .describe("Instead of the integration's; `null` turns it off."),
    read_only: z
      .boolean()
      .optional()
      .describe(
        'Changes nothing upstream, for any name and HTTP method: sandbox accounts may call it. Default: list and get.',
      ),
    description: plainText().optional().describe('What the method does, for people and for tools.'),
    scopes: listOf(rawText()).optional().describe('OAuth scopes the method needs.'),
    query_schema: jsonSchema.optional().describe('JSON Schema of the query parameters.'),
    body_schema: jsonSchema.optional().describe('JSON Schema of the body.'),
    examples: anyJson().optional().describe('Examples, for example {response: …}; never evaluated.'),
  })
  .meta({ id: 'Method' })

export type MethodDefinition = z.output<typeof methodSchema>

/** The request of a step of an action: what its answer may hold is fixed, because the results of all steps are kept. */
export const stepRequestSchema = methodSchema.omit({ max_response_bytes: true })

/** The methods of one resource by name. */
export const resourceSchema = mapOf(identifierText('method'), methodSchema).describe(
  'Methods by name: list, get, create, update, delete or names of your own.',
)

/** Names of writing methods without an HTTP method. */
export function listMethodsWithoutVerb(resource: { readonly [method: string]: unknown }): string[] {
  return WRITING_METHODS.filter((name) => {
    const method = resource[name]
    return typeof method === 'object' && method !== null && !('method' in method)
  })
}

/** A name that is valid in a URL path and in a placeholder. */
export function identifierText(noun: string): z.ZodString {
  return z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9_-]{1,128}$/, { error: `is not a ${noun} name: letters, digits, "_" and "-" only` })
}

function findResponsePathProblem(text: string): string | undefined {
  if (!text.startsWith('$')) return findPathProblem(text)
  const parsed = validateExpression(text)
  return 'problem' in parsed ? `is not a JSONata expression: ${parsed.problem}` : undefined
}
