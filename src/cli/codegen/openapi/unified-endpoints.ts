import type { DescFile, JsonObject } from '@bufbuild/protobuf'
import { PROXIED_RATE_LIMIT_HEADERS } from './errors.ts'
import type { SchemaBook } from './schemas.ts'

/** A call of a unified resource in HTTP's own terms, which no RPC is bound to. */
interface UnifiedEndpoint {
  readonly path: string
  readonly verb: string
  readonly operationId: string
  readonly summary: string
}

const RESOURCE = '/unified/{model}/{resource}'

const ENDPOINTS: readonly UnifiedEndpoint[] = [
  { path: RESOURCE, verb: 'get', operationId: 'UnifiedList', summary: 'Lists records, one page.' },
  { path: RESOURCE, verb: 'post', operationId: 'UnifiedCreate', summary: 'Creates a record.' },
  { path: `${RESOURCE}/{id}`, verb: 'get', operationId: 'UnifiedGet', summary: 'Reads a record.' },
  { path: `${RESOURCE}/{id}`, verb: 'put', operationId: 'UnifiedReplace', summary: 'Calls `update` of a record.' },
  { path: `${RESOURCE}/{id}`, verb: 'patch', operationId: 'UnifiedUpdate', summary: 'Calls `update` of a record.' },
  { path: `${RESOURCE}/{id}`, verb: 'delete', operationId: 'UnifiedDelete', summary: 'Deletes a record.' },
  {
    path: `${RESOURCE}/{id}`,
    verb: 'post',
    operationId: 'UnifiedCall',
    summary: 'Calls a method of the resource as a whole, whose name is in the place of the id.',
  },
  {
    path: `${RESOURCE}/{id}/{method}`,
    verb: 'post',
    operationId: 'UnifiedCallOfRecord',
    summary: 'Calls any method of a record.',
  },
]

const SAME =
  "The mapping of the account's integration decides which method of its definition is called, and maps filters, body and answer."

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  model: 'A unified model, such as `crm`.',
  resource: 'A resource of the model, such as `contacts`.',
  id: 'The record.',
  method: 'A method of the resource.',
}

/** Parameters that these calls share, to be defined once. */
export const UNIFIED_PARAMETERS: JsonObject = {
  Filters: {
    name: 'filters',
    in: 'query',
    style: 'deepObject',
    explode: true,
    description:
      'Conditions on fields, each a parameter of its own without this name: `status=open`, `updated_at[gt]=2026-01-01`; with `eq`, `ne`, `in`, `nin`, `gt`, `gte`, `lt`, `lte`, `like`.',
    schema: { type: 'object', additionalProperties: true },
  },
  SortBy: {
    name: 'sort_by',
    in: 'query',
    description: 'The field to sort by, with `-` before it downward.',
    schema: { type: 'string' },
  },
  StrictFilters: flag('strict_filters', 'Whether a filter or order that is not passed on is an error.'),
  Expand: {
    name: 'expand',
    in: 'query',
    style: 'form',
    explode: false,
    description: 'References to be replaced by the records that they name.',
    schema: { type: 'array', items: { type: 'string' } },
  },
  ExpandUnbatched: flag('expand_unbatched', 'Whether `expand` may make more than 50 calls for a page.'),
  IncludeRemoteData: flag(
    'include_remote_data',
    'Whether each record carries that of the third party in `remote_data`.',
  ),
  IncludeSensitive: flag('include_sensitive', 'Whether records carry fields that the model marks as sensitive.'),
  RemoteQuery: {
    name: 'remote_query',
    in: 'query',
    style: 'deepObject',
    explode: true,
    description: 'Query parameters of the third party, passed on unmapped: `remote_query[archived]=false`.',
    schema: { type: 'object', additionalProperties: true },
  },
}

const OF_CALLS = ['Expand', 'ExpandUnbatched', 'IncludeRemoteData', 'IncludeSensitive', 'RemoteQuery']
const OF_LISTS = ['Filters', 'SortBy', 'Limit', 'NextCursor', 'StrictFilters']

/** The path items of unified resources. */
export function unifiedPathItems(files: readonly DescFile[], book: SchemaBook): JsonObject {
  const items: Record<string, JsonObject> = {}
  for (const each of ENDPOINTS) items[each.path] = { ...items[each.path], [each.verb]: operation(each, files, book) }
  return items
}

function operation(endpoint: UnifiedEndpoint, files: readonly DescFile[], book: SchemaBook): JsonObject {
  const { path, verb, operationId, summary } = endpoint
  const isList = operationId === 'UnifiedList'
  const shared = [
    'Environment',
    'IntegratedAccountId',
    ...(isList ? OF_LISTS : []),
    ...OF_CALLS,
    'DryRun',
    'IncludeRaw',
  ]
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: PATH_PARAMETERS[name] ?? '',
    schema: { type: 'string' },
  }))
  return {
    operationId,
    tags: ['UnifiedService'],
    summary,
    description: `${summary} ${SAME}`,
    parameters: [...inPath, ...shared.map((name) => ({ $ref: `#/components/parameters/${name}` }))],
    ...(verb !== 'get' && verb !== 'delete' && { requestBody: BODY }),
    responses: {
      '200': {
        description: 'Done.',
        headers: PROXIED_RATE_LIMIT_HEADERS,
        content: { 'application/json': { schema: answerSchema(isList, files, book) } },
      },
      '401': { $ref: '#/components/responses/Unauthenticated' },
      '429': { $ref: '#/components/responses/ProxiedRateLimited' },
      default: { $ref: '#/components/responses/ProxiedError' },
    },
  }
}

const BODY: JsonObject = {
  required: false,
  content: {
    'application/json': {
      schema: {
        type: 'object',
        description: 'Fields of the resource.',
        properties: {
          remote_fields: {
            type: 'object',
            description: 'Fields of the third party, merged unmapped over the body that the mapping makes.',
          },
        },
        additionalProperties: true,
      },
    },
  },
}

function answerSchema(isList: boolean, files: readonly DescFile[], book: SchemaBook): JsonObject {
  const refTo = (name: string) => {
    const found = files.flatMap((file) => file.messages).find(({ typeName }) => typeName === `patchbay.v1.${name}`)
    if (found === undefined) throw new Error(`the contract has no patchbay.v1.${name}`)
    return book.refTo(found, 'response')
  }
  const text = (description: string) => ({ type: 'string', description })
  return {
    type: 'object',
    properties: {
      result: { description: 'The record, or the records of a list, as the resource has them.' },
      ...(isList && {
        next_cursor: text('Asks for the next page. Absent: the list ends here.'),
        prev_cursor: text('Asks for the page before, where the third party tells.'),
        stop_reason: text('Why the list ended. Absent: it continues.'),
        is_partial: { type: 'boolean', description: 'Whether the records lack fields that `get` answers.' },
        ignored_filters: {
          type: 'array',
          items: refTo('IgnoredFilter'),
          description: 'What the third party was not asked for. Absent: nothing.',
        },
      }),
      warnings: {
        type: 'array',
        items: refTo('UnifiedWarning'),
        description: 'What the mapping could not do with the call as a whole. Absent: nothing.',
      },
      raw: { description: 'The decoded body. Absent unless `include_raw` is set.' },
      dry_run: refTo('UnifiedPreview'),
    },
  }
}

function flag(name: string, description: string): JsonObject {
  return { name, in: 'query', description, schema: { type: 'boolean', default: false } }
}
