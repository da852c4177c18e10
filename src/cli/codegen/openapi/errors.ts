import type { DescFile, JsonObject } from '@bufbuild/protobuf'
import { paragraphs } from './annotations.ts'
import type { SchemaBook } from './schemas.ts'

/** The kinds of detail an error may carry; exactly one ErrorInfo, the others where they help. */
const DETAIL_TYPES = [
  'google.rpc.ErrorInfo',
  'google.rpc.BadRequest',
  'google.rpc.ResourceInfo',
  'google.rpc.RetryInfo',
] as const

/** What the product promises of a detail beyond its type. */
const DETAIL_FIELDS: Readonly<Partial<Record<(typeof DETAIL_TYPES)[number], JsonObject>>> = {
  'google.rpc.ErrorInfo': {
    reason: { $ref: '#/components/schemas/ErrorReason' },
    domain: { const: 'patchbay' },
  },
}

const REASON_PREFIX = 'ERROR_REASON_'

/** The schema of every error body, with the catalogue of reasons. */
export function errorSchema(files: readonly DescFile[], book: SchemaBook): JsonObject {
  return {
    type: 'object',
    description: 'The answer to a request that failed.',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'status', 'message', 'details'],
        properties: {
          code: { type: 'integer', format: 'int32', description: 'The HTTP status.' },
          status: { type: 'string', description: 'The gRPC code, such as `INVALID_ARGUMENT`.' },
          message: { type: 'string', description: 'What is wrong and what to do, for people. Not stable.' },
          details: {
            type: 'array',
            description: 'Exactly one `ErrorInfo`; others where they help.',
            items: { anyOf: DETAIL_TYPES.map((typeName) => detailSchema(typeName, files, book)) },
          },
          result: { description: 'What the error expression of the definition tells of the error. Absent: nothing.' },
          raw: { description: 'What a third party answered, decoded. Absent unless it was asked for.' },
        },
      },
    },
  }
}

function detailSchema(
  typeName: (typeof DETAIL_TYPES)[number],
  files: readonly DescFile[],
  book: SchemaBook,
): JsonObject {
  const message = files.flatMap((file) => file.messages).find((candidate) => candidate.typeName === typeName)
  if (!message) throw new Error(`the contract does not vendor ${typeName}`)
  return {
    ...book.refTo(message, 'response'),
    required: ['@type'],
    properties: { '@type': { const: `type.googleapis.com/${typeName}` }, ...DETAIL_FIELDS[typeName] },
  }
}

/** The reasons as they appear in `ErrorInfo.reason`, each explained. */
export function reasonSchema(files: readonly DescFile[]): JsonObject {
  const catalogue = files.flatMap((file) => file.enums).find((type) => type.typeName === 'patchbay.v1.ErrorReason')
  if (!catalogue) throw new Error('the contract has no patchbay.v1.ErrorReason')
  const sent = catalogue.values.filter((value) => value.number !== 0)
  return {
    type: 'string',
    description: paragraphs(catalogue).join('\n\n'),
    oneOf: sent.map((value) => ({
      const: value.name.slice(REASON_PREFIX.length),
      description: paragraphs(value).join('\n\n'),
    })),
  }
}

/** Headers of an answer with the content of a third party. */
export const PROXIED_RATE_LIMIT_HEADERS: JsonObject = {
  'RateLimit-Limit': { $ref: '#/components/headers/Upstream-RateLimit-Limit' },
  'RateLimit-Remaining': { $ref: '#/components/headers/Upstream-RateLimit-Remaining' },
  'RateLimit-Reset': { $ref: '#/components/headers/Upstream-RateLimit-Reset' },
  'Patchbay-RateLimit-Limit': { $ref: '#/components/headers/RateLimit-Limit' },
  'Patchbay-RateLimit-Remaining': { $ref: '#/components/headers/RateLimit-Remaining' },
  'Patchbay-RateLimit-Reset': { $ref: '#/components/headers/RateLimit-Reset' },
}

/** Headers of every other answer to a request that carries a token. */
export const RATE_LIMIT_HEADERS: JsonObject = {
  'RateLimit-Limit': { $ref: '#/components/headers/RateLimit-Limit' },
  'RateLimit-Remaining': { $ref: '#/components/headers/RateLimit-Remaining' },
  'RateLimit-Reset': { $ref: '#/components/headers/RateLimit-Reset' },
}

/** What the rate limit headers and the error responses refer to. */
export const HEADER_COMPONENTS: JsonObject = {
  'RateLimit-Limit': integerHeader(
    'Units that the token may use per window; most requests take one, `x-cost` says how many.',
  ),
  'RateLimit-Remaining': integerHeader('Units left in the current window.'),
  'RateLimit-Reset': integerHeader('Seconds until the window ends.'),
  'Upstream-RateLimit-Limit': textHeader('Limit of the third party, as it or the definition states it.'),
  'Upstream-RateLimit-Remaining': textHeader('What is left of the limit of the third party.'),
  'Upstream-RateLimit-Reset': textHeader('When the limit of the third party begins anew.'),
  'Retry-After': integerHeader('Seconds to wait before the next attempt.'),
}

function integerHeader(text: string): JsonObject {
  return { description: text, schema: { type: 'integer', minimum: 0 } }
}

function textHeader(text: string): JsonObject {
  return { description: text, schema: { type: 'string' } }
}

const ERROR_CONTENT: JsonObject = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }

/** Responses that any operation may give. */
export const RESPONSE_COMPONENTS: JsonObject = {
  Unauthenticated: {
    description: 'The token is missing or not valid.',
    headers: { 'WWW-Authenticate': { description: 'Always `Bearer`.', schema: { type: 'string' } } },
    content: ERROR_CONTENT,
  },
  RateLimited: {
    description: 'The budget of the token is used up, or too many requests of the environment run at once.',
    headers: { ...RATE_LIMIT_HEADERS, 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
    content: ERROR_CONTENT,
  },
  ProxiedRateLimited: {
    description: 'The request budget, the rate limit of the third party or the budget of its definition is used up.',
    headers: { ...PROXIED_RATE_LIMIT_HEADERS, 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
    content: ERROR_CONTENT,
  },
  ProxiedError: {
    description: 'The request failed.',
    headers: PROXIED_RATE_LIMIT_HEADERS,
    content: ERROR_CONTENT,
  },
  Error: { description: 'The request failed.', headers: RATE_LIMIT_HEADERS, content: ERROR_CONTENT },
}
