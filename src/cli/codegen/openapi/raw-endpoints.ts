import type { DescFile, JsonObject } from '@bufbuild/protobuf'
import { PROXIED_RATE_LIMIT_HEADERS } from './errors.ts'
import type { SchemaBook } from './schemas.ts'

/** An address that no RPC is bound to: a call in HTTP's own terms. */
interface RawEndpoint {
  readonly path: string
  readonly verb: string
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly kind: 'described' | 'listed' | 'custom'
}

const TAG = 'ProxyService'

/** What a token needs; the method of the definition, or the verb below `/custom`, decides whether it writes. */
const SCOPE = 'proxy:read'
const SCOPE_TEXT = `Scope: \`${SCOPE}\`, and \`proxy:write\` for what changes something at the third party.`

const SAME = 'The method of the definition decides what is sent; the query, but for the parameters below, is its.'

/** Statuses of third parties that `/custom` passes on. One by one: several generators write no valid code for the range `2XX`. */
const PASSED_ON: readonly string[] = ['200', '201', '202', '204', '206']

/** What the verbs below `/proxy/{resource}` stand for. */
const ENDPOINTS: readonly RawEndpoint[] = [
  endpoint('/proxy/{resource}', 'get', 'ProxyList', 'Lists records, one page.', 'listed'),
  endpoint('/proxy/{resource}', 'post', 'ProxyCreate', 'Creates a record.'),
  endpoint('/proxy/{resource}/{id}', 'get', 'ProxyGet', 'Reads a record.'),
  endpoint('/proxy/{resource}/{id}', 'put', 'ProxyReplace', 'Calls `update` of a record.'),
  endpoint('/proxy/{resource}/{id}', 'patch', 'ProxyUpdate', 'Calls `update` of a record.'),
  endpoint('/proxy/{resource}/{id}', 'delete', 'ProxyDelete', 'Deletes a record.'),
  ...['get', 'post', 'put', 'patch', 'delete'].map((verb) =>
    endpoint(
      '/proxy/{resource}/{id}/{method}',
      verb,
      `ProxyCallBy${capitalised(verb)}`,
      'Calls any method of a resource, with any verb.',
    ),
  ),
  endpoint('/proxy/_/{action}', 'post', 'ProxyAction', 'Runs a named action of the definition.'),
  ...['get', 'post', 'put', 'patch', 'delete'].map((verb) => ({
    path: '/custom/{path}',
    verb,
    operationId: `Custom${capitalised(verb)}`,
    summary: 'Calls any path of the third party.',
    description:
      'The path may hold slashes. It goes below the base address of the definition, with its authorization and headers; query and body pass as they are, and so does the answer. What the definition counts as an error or a rate limit is answered as such.',
    kind: 'custom' as const,
  })),
]

/** Where a value of a path leads. */
const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  resource: 'A resource of the definition.',
  id: 'The record; `_` for none.',
  method: 'A method of the resource.',
  action: 'A named action of the definition.',
  path: 'The path at the third party.',
}

/** Parameters that calls share, to be defined once. */
export const CALL_PARAMETERS: JsonObject = {
  IntegratedAccountId: {
    name: 'integrated_account_id',
    in: 'query',
    required: true,
    description: 'The account to call through.',
    schema: { type: 'string', format: 'uuid' },
  },
  DryRun: {
    name: 'dry_run',
    in: 'query',
    description: 'Whether to show what would be sent instead of sending it.',
    schema: { type: 'boolean', default: false },
  },
  IncludeRaw: {
    name: 'include_raw',
    in: 'query',
    description:
      'Whether the answer carries the decoded body of the third party in `raw`; of an error, in `error.raw`.',
    schema: { type: 'boolean', default: false },
  },
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'Records per page; lowered to what the third party allows. Absent: as the definition says.',
    schema: { type: 'integer', minimum: 1, maximum: 10_000 },
  },
  NextCursor: {
    name: 'next_cursor',
    in: 'query',
    description: 'The `next_cursor` or `prev_cursor` of another page of the same list, with the same parameters.',
    schema: { type: 'string' },
  },
}

/** The path items of the raw endpoints. */
export function rawPathItems(files: readonly DescFile[], book: SchemaBook): JsonObject {
  const items: Record<string, JsonObject> = {}
  for (const raw of ENDPOINTS) items[raw.path] = { ...items[raw.path], [raw.verb]: rawOperation(raw, files, book) }
  return items
}

function rawOperation(raw: RawEndpoint, files: readonly DescFile[], book: SchemaBook): JsonObject {
  const { path, verb, operationId, summary, description, kind } = raw
  const hasBody = verb !== 'get' && verb !== 'delete'
  const success: JsonObject = {
    description:
      kind === 'custom'
        ? 'What the third party answered; of a dry run `{dry_run}`.'
        : 'Done; or, where the answer is bytes, those bytes. An answer of any other status in which the error expression of the definition finds no error has the same form, with its body as `result`.',
    headers: PROXIED_RATE_LIMIT_HEADERS,
    content: {
      ...(kind !== 'custom' && { 'application/json': { schema: answerSchema(kind, files, book) } }),
      ...BYTES,
    },
  }
  return {
    operationId,
    tags: [TAG],
    summary,
    description: `${description}\n\n${SCOPE_TEXT}`,
    'x-access': 'environment',
    'x-scope': SCOPE,
    parameters: parametersOf(path, kind),
    ...(hasBody && { requestBody: { required: false, content: bodyContent(kind) } }),
    responses: {
      ...Object.fromEntries((kind === 'custom' ? PASSED_ON : ['200']).map((status) => [status, success])),
      '401': { $ref: '#/components/responses/Unauthenticated' },
      '429': { $ref: '#/components/responses/ProxiedRateLimited' },
      default: { $ref: '#/components/responses/ProxiedError' },
    },
  }
}

function parametersOf(path: string, kind: RawEndpoint['kind']): JsonObject[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: PATH_PARAMETERS[name] ?? '',
    schema: { type: 'string' },
  }))
  const shared = {
    custom: ['IntegratedAccountId', 'DryRun'],
    described: ['IntegratedAccountId', 'DryRun', 'IncludeRaw'],
    listed: ['IntegratedAccountId', 'Limit', 'NextCursor', 'DryRun', 'IncludeRaw'],
  }[kind]
  return [...inPath, ...['Environment', ...shared].map((name) => ({ $ref: `#/components/parameters/${name}` }))]
}

const BYTES: JsonObject = { '*/*': { schema: {} } }

function bodyContent(kind: RawEndpoint['kind']): JsonObject {
  return kind === 'custom' ? BYTES : { 'application/json': { schema: {} }, ...BYTES }
}

function answerSchema(kind: RawEndpoint['kind'], files: readonly DescFile[], book: SchemaBook): JsonObject {
  const preview = files.flatMap((file) => file.messages).find(({ typeName }) => typeName === 'patchbay.v1.CallPreview')
  if (preview === undefined) throw new Error('the contract has no patchbay.v1.CallPreview')
  const cursor = (description: string) => ({ type: 'string', description })
  return {
    type: 'object',
    properties: {
      result: { description: 'What the definition takes out of the body; of a list its records.' },
      ...(kind === 'listed' && {
        next_cursor: cursor('Asks for the next page. Absent: the list ends here.'),
        prev_cursor: cursor('Asks for the page before, where the third party tells.'),
        stop_reason: cursor('Why the list ended. Absent: it continues.'),
      }),
      raw: { description: 'The decoded body. Absent unless `include_raw` is set.' },
      dry_run: book.refTo(preview, 'response'),
    },
  }
}

function endpoint(
  path: string,
  verb: string,
  operationId: string,
  summary: string,
  kind: RawEndpoint['kind'] = 'described',
): RawEndpoint {
  return { path, verb, operationId, summary, description: `${summary} ${SAME}`, kind }
}

function capitalised(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`
}
