import type { DescField, DescMethod, JsonObject } from '@bufbuild/protobuf'
import { type AccessName, type Annotations, type HttpBinding, paragraphs, pathFields } from './annotations.ts'
import { RATE_LIMIT_HEADERS } from './errors.ts'
import type { SchemaBook } from './schemas.ts'

/** Fields that REST may also carry as a header, and the parameter that documents it. */
const HEADER_ALIASES: Readonly<Record<string, string>> = { request_id: 'IdempotencyKey', etag: 'IfMatch' }

/** Header parameters that operations refer to. */
export const PARAMETER_COMPONENTS: JsonObject = {
  Environment: {
    name: 'patchbay-environment',
    in: 'header',
    description:
      'The environment that a request made with a team token concerns. Not needed with an environment token, and without effect where the operation concerns the team.',
    schema: { type: 'string', format: 'uuid' },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Another way to give `request_id`.',
    schema: { type: 'string', format: 'uuid' },
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'Another way to give `etag`.',
    schema: { type: 'string', maxLength: 128 },
  },
}

/** The access rule of an operation in words; `x-access` repeats it for programs. */
const ACCESS_TEXTS: Readonly<Record<AccessName, string>> = {
  public: 'Needs no token.',
  token: 'Needs an API token of either kind.',
  environment: 'Needs an environment token, or a team token with the header `patchbay-environment`.',
  environment_or_link:
    'Needs an environment token, a team token with the header `patchbay-environment`, or the link token of a link that has not ended.',
  team: 'Needs a team token.',
}

/** The scope that a token needs; `x-scope` repeats it for programs. */
function scopeTexts(scope: string): readonly string[] {
  return scope === '' ? [] : [`Scope: \`${scope}\`.`]
}

/** What a call costs, of an operation that takes more than others; `x-cost` repeats it for programs. */
function costTexts(cost: number): readonly string[] {
  return cost === 1 ? [] : [`Takes ${cost} units of the token's rate limit.`]
}

/** One RPC as an OpenAPI operation. */
export function operation(
  method: DescMethod,
  binding: HttpBinding,
  annotations: Annotations,
  book: SchemaBook,
): JsonObject {
  const [summary = '', ...rest] = paragraphs(method)
  const inPath = pathFields(binding.path)
  const access = annotations.access(method)
  const effects = annotations.effects(method)
  const cost = annotations.cost(method)
  const scope = annotations.scope(method)
  const body = binding.hasBody ? book.bodyRef(method.input, inPath) : undefined
  return {
    operationId: method.name,
    tags: [method.parent.name],
    summary: firstSentence(summary),
    description: [summary, ...rest, ACCESS_TEXTS[access], ...scopeTexts(scope), ...costTexts(cost)].join('\n\n'),
    'x-access': access,
    ...(scope !== '' && { 'x-scope': scope }),
    ...(effects.length > 0 && { 'x-effects': [...effects] }),
    'x-cost': cost,
    ...(access === 'public' && { security: [] }),
    ...(access === 'environment_or_link' && { security: [{ token: [] }, { link: [] }] }),
    parameters: parameters(method, binding, inPath, book),
    ...(body && { requestBody: requestBody(method, inPath, body, annotations) }),
    responses: {
      '200': {
        description: 'Done.',
        headers: RATE_LIMIT_HEADERS,
        content: { 'application/json': { schema: book.refTo(method.output, 'response') } },
      },
      '401': { $ref: '#/components/responses/Unauthenticated' },
      '429': { $ref: '#/components/responses/RateLimited' },
      default: { $ref: '#/components/responses/Error' },
    },
  }
}

function parameters(
  method: DescMethod,
  binding: HttpBinding,
  inPath: readonly string[],
  book: SchemaBook,
): JsonObject[] {
  const { fields } = method.input
  const path = fields.filter((field) => inPath.includes(field.name)).map((field) => parameter(field, 'path', book))
  const query = binding.hasBody ? [] : fields.filter((field) => !inPath.includes(field.name))
  const headers = fields.flatMap((field) => HEADER_ALIASES[field.name] ?? [])
  return [
    ...path,
    ...query.map((field) => parameter(field, 'query', book)),
    ...['Environment', ...headers].map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ]
}

function parameter(field: DescField, place: 'path' | 'query', book: SchemaBook): JsonObject {
  const { description = '', ...schema } = book.ofField(field, 'request')
  return { name: field.name, in: place, ...(place === 'path' && { required: true }), description, schema }
}

function requestBody(
  method: DescMethod,
  inPath: readonly string[],
  schema: JsonObject,
  annotations: Annotations,
): JsonObject {
  const required = method.input.fields.some(
    (field) => !inPath.includes(field.name) && annotations.hasBehavior(field, 'REQUIRED'),
  )
  return { required, content: { 'application/json': { schema } } }
}

function firstSentence(paragraph: string): string {
  return paragraph.match(/^.*?\.(?=\s|$)/)?.[0] ?? paragraph
}
