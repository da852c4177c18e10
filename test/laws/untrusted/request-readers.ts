import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf'
import { CreateIntegratedAccountRequestSchema } from '../../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { CreateIntegrationRequestSchema } from '../../../gen/patchbay/v1/integration_service_pb.ts'
import { CreateSyncJobRequestSchema } from '../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { CONFIG_LENGTH_MAX } from '../../../src/engine/definitions/check.ts'
import { checkConfigAsync, checkOverrideAsync } from '../../../src/engine/definitions/index.ts'
import { compileTemplate, listPlaceholderPaths, validateExpression } from '../../../src/engine/expressions/index.ts'
import { lexTemplate } from '../../../src/engine/expressions/placeholder.ts'
import { compileUrl, findBaseUrlProblem } from '../../../src/engine/expressions/url-template.ts'
import { isUuid } from '../../../src/foundation/base/index.ts'
import { decodePageToken } from '../../../src/foundation/database/index.ts'
import { yieldToEventLoop } from '../../../src/foundation/fair/index.ts'
import {
  isJsonObject,
  JSON_VALUES_MAX,
  type Json,
  type JsonObject,
  parseDotPath,
  scanJson,
  tryParseDotPath,
} from '../../../src/foundation/json/index.ts'
import { parseKeyRing } from '../../../src/foundation/secrets/index.ts'
import { checkAskedEventTypes } from '../../../src/platform/outbox/index.ts'
import { PAYLOAD_BYTES_MAX } from '../../../src/platform/outbox/limit-payload.ts'
import { hashToken } from '../../../src/platform/tenancy/token-format.ts'
import { parseProxyPath } from '../../../src/server/api/http/proxy-path.ts'
import { parseProxyQuery } from '../../../src/server/api/http/proxy-query.ts'
import { parseUnifiedPath } from '../../../src/server/api/http/unified-path.ts'
import { parseUnifiedQuery } from '../../../src/server/api/http/unified-query.ts'
import { assertFewFields } from '../../../src/server/api/messages/binary.ts'
import { decodeJson } from '../../../src/server/api/messages/codec.ts'
import { parseRequestJson, parseRequestJsonInSlices } from '../../../src/server/api/messages/json-text.ts'
import { validateRules } from '../../../src/server/api/messages/rules.ts'
import { findUnstorableFields } from '../../../src/server/api/messages/storable.ts'
import { isJsonType } from '../../../src/server/api/pipeline/media-type.ts'
import { requestJson } from '../../../src/server/api/rest/request.ts'
import { connectJsonStream, createConnectJsonGet } from '../../../src/server/api/rpc/connect-json.ts'
import { formatOf } from '../../../src/server/api/rpc/wire-format.ts'
import { findTextProblems, parseEtag } from '../../../src/server/api/services/values.convert.ts'
import { ConfigError, readConfig } from '../../../src/server/config/index.ts'
import { checkArgsSchema } from '../../../src/sync/jobs/args.ts'
import { checkResources } from '../../../src/sync/jobs/check-resources.ts'
import { readSyncResources } from '../../../src/sync/jobs/resource.ts'
import { checkCronExpression } from '../../../src/sync/schedules/check-cron-expression.ts'
import { parseFilter } from '../../../src/webhooks/outbound/filter.ts'
import { bytes, KIB, MIB, never, numbered, type Reader, repeated, withError, withFailure } from './reader.ts'

const REQUEST = 4 * MIB
const QUERY = 16 * KIB
const DEFINITION = CONFIG_LENGTH_MAX

/** Everything that is done to a request message before its handler sees it. */
function inspect(desc: DescMessage, message: Message): number {
  return validateRules(desc, message).length + findUnstorableFields(desc, message).length
}

function messageReader(desc: DescMessage, seed: Json, attacks: Reader['attacks']): Reader {
  return {
    name: `${desc.name} as JSON`,
    covers: [
      'server/api/messages/json-text.ts#parseRequestJson',
      'server/api/messages/json-text.ts#parseRequestJsonInSlices',
      'server/api/messages/codec.ts#decodeJson',
      'server/api/messages/json-shape.ts#validateJsonShape',
      'server/api/messages/rules.ts#validateRules',
      'server/api/messages/storable.ts#findUnstorableFields',
      'server/api/messages/codec.ts#decodeJsonBody',
    ],
    lengthMax: REQUEST,
    read: async (input) => {
      const json = await parseRequestJsonInSlices(bytes(input))
      const draft = decodeJson(desc, json)
      await yieldToEventLoop()
      const breaches = validateRules(desc, draft.message)
      await yieldToEventLoop()
      return draft.findings.length + breaches.length + findUnstorableFields(desc, draft.message).length
    },
    rejects: withFailure,
    seeds: [JSON.stringify(seed)],
    attacks: { ...attacks, ...withFewerValues(attacks) },
  }
}

/** The attacks that have more values than are read once more, at the length where they just have as many. */
function withFewerValues(attacks: Reader['attacks']): Reader['attacks'] {
  const isRead = (text: string) => scanJson(text).values <= JSON_VALUES_MAX
  const shortened = (make: (length: number) => string) => (length: number) => {
    let [short, long] = [0, length]
    while (long - short > KIB) {
      const between = Math.floor((short + long) / 2)
      if (isRead(make(between))) short = between
      else long = between
    }
    return make(short)
  }
  const many = Object.entries(attacks).filter(([, make]) => !isRead(make(REQUEST)))
  return Object.fromEntries(many.map(([name, make]) => [`${name}, as many as are read`, shortened(make)]))
}

/** A binary request whose config is `{"a": [null, …]}`: two bytes for each element. */
function configInBinary(length: number): string {
  const within = (tag: string, text: string) => `${tag}${varint(text.length)}${text}`
  const list = within('\x32', '\x0a\x00'.repeat(length / 2))
  const entry = `\x0a\x01a${within('\x12', list)}`
  const { number = 0 } = CreateIntegrationRequestSchema.field.config ?? {}
  return within(String.fromCharCode(number * 8 + 2), within('\x0a', entry))
}

function varint(value: number): string {
  return value < 128 ? String.fromCharCode(value) : String.fromCharCode((value % 128) + 128) + varint(value >> 7)
}

const OPERATION = { input: CreateIntegrationRequestSchema } as never
const EXCHANGE = { context: { header: () => undefined } } as never

const MESSAGES: readonly Reader[] = [
  messageReader(
    CreateIntegrationRequestSchema,
    { name: 'a', config: { base_url: 'https://a.example', query: { a: [1, null, true] } } },
    {
      'unknown fields': numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      values: repeated('{"a":1},', '{"config":{"a":[', '1]}}'),
      keys: numbered((index) => `"k${index}":1,`, '{"config":{', '"z":1}}'),
      NUL: repeated('"\\u0000",', '{"config":{"a":[', '1]}}'),
      surrogates: repeated('"\\ud800",', '{"config":{"a":[', '1]}}'),
      'reserved keys': repeated('{"__proto__":1},', '{"config":{"a":[', '1]}}'),
      nesting: repeated('[', '{"config":{"a":'),
      text: repeated('x', '{"name":"', '"}'),
      backslashes: repeated('\\', '{"name":"'),
    },
  ),
  messageReader(
    CreateSyncJobRequestSchema,
    { resources: [{ resource: 'a', method: 'list', query: { a: '{{args.b}}' } }], args_schema: { type: 'object' } },
    {
      resources: repeated('{"resource":"a"},', '{"resources":[', '{}]}'),
      'wrong types': repeated('{"resource":1},', '{"resources":[', '{}]}'),
    },
  ),
  messageReader(
    CreateIntegratedAccountRequestSchema,
    { credentials: { a: 'b' }, context: { c: 1 } },
    {
      credentials: numbered((index) => `"k${index}":"v",`, '{"credentials":{', '"z":1}}'),
    },
  ),
  {
    name: 'CreateIntegrationRequest as protobuf',
    covers: [],
    lengthMax: REQUEST,
    // As connect-node decodes it, which throws errors of protobuf for bytes that are no message.
    read: (input) => {
      assertFewFields(CreateIntegrationRequestSchema, bytes(input))
      return inspect(CreateIntegrationRequestSchema, fromBinary(CreateIntegrationRequestSchema, bytes(input)))
    },
    rejects: (error) => error instanceof Error,
    seeds: ['\x0a\x01a', '\x1a\x05\x0a\x03\x0a\x01a'],
    attacks: {
      names: repeated('\x0a\x01a'),
      zeros: repeated('\x00'),
      unknown: repeated('\xf8\x07\x01'),
      'list elements': (length) => configInBinary(Math.min(length, 2 ** 21 - 100)),
      'list elements, as many as are read': (length) => configInBinary(Math.min(length, 48_000 * 2)),
    },
  },
  {
    name: 'envelope',
    covers: [],
    lengthMax: REQUEST,
    read: (input) => connectJsonStream.decode(OPERATION, EXCHANGE, bytes(input), REQUEST),
    rejects: withFailure,
    seeds: ['\x00\x00\x00\x00\x02{}', '\x01\x00\x00\x00\x00'],
    attacks: { zeros: repeated('\x00') },
  },
]

const REST_BINDING = { operation: { input: CreateIntegrationRequestSchema }, hasBody: false } as never
const CALL = { header: () => undefined } as never

const REQUESTS: readonly Reader[] = [
  {
    name: 'REST query',
    covers: ['server/api/messages/query-string.ts#readQuery'],
    lengthMax: QUERY,
    read: (query) => requestJson({ binding: REST_BINDING, variables: [], query }, Buffer.alloc(0), CALL),
    rejects: withFailure,
    seeds: ['name=a&a.b=c', 'name=%41&name=b'],
    attacks: {
      names: numbered((index) => `${index.toString(36)}&`),
      'one name': repeated('name=a&'),
      dots: repeated('a.'),
      percents: repeated('%'),
    },
  },
  {
    name: 'REST body where none is taken',
    covers: [],
    lengthMax: REQUEST,
    read: (body) => requestJson({ binding: REST_BINDING, variables: [], query: '' }, bytes(body), CALL),
    rejects: withFailure,
    seeds: ['', '{}', ' { } '],
    attacks: { blanks: repeated(' ', '', 'x'), 'blanks in braces': repeated(' ', '{', 'x'), braces: repeated('{ ') },
  },
  {
    name: 'Connect GET',
    covers: [],
    lengthMax: QUERY,
    read: (query) => createConnectJsonGet(query).decode(OPERATION, EXCHANGE, Buffer.alloc(0), REQUEST),
    rejects: withFailure,
    seeds: ['encoding=json&message=%7B%22name%22%3A%22a%22%7D', 'encoding=json&base64=1&message=e30'],
    attacks: { names: repeated('a&'), message: repeated('A', 'encoding=json&base64=1&message=') },
  },
  {
    name: 'query of a call',
    covers: ['server/api/http/proxy-query.ts#parseProxyQuery'],
    lengthMax: QUERY,
    read: parseProxyQuery,
    rejects: withFailure,
    seeds: ['integrated_account_id=0198c0de-0000-7000-8000-000000000000&a[b][]=c&limit=5', 'a=1&a=2'],
    attacks: {
      names: numbered((index) => `${index.toString(36)}&`),
      'one list': repeated('a[]=1&'),
      brackets: repeated('[a]', 'a'),
      'open brackets': repeated('[', 'a'),
    },
  },
  {
    name: 'address of a call',
    covers: ['server/api/http/proxy-path.ts#parseProxyPath'],
    lengthMax: QUERY,
    read: (input) => parseProxyPath('GET', input),
    rejects: withFailure,
    seeds: ['contacts/1/list', '_/a', 'a%2Fb'],
    attacks: { slashes: repeated('/'), percents: repeated('%41') },
  },
  {
    name: 'query of a call of a unified resource',
    covers: ['server/api/http/unified-query.ts#parseUnifiedQuery'],
    lengthMax: QUERY,
    read: parseUnifiedQuery,
    rejects: withFailure,
    seeds: [
      'integrated_account_id=0198c0de-0000-7000-8000-000000000000&status[in]=a,b&sort_by=-name&expand=a,b&limit=5',
      'updated_at[gt]=2026-01-01&remote_query[a]=1',
    ],
    attacks: {
      filters: numbered((index) => `f${index.toString(36)}[gt]=1&`),
      'one list': repeated('a[in]=1&'),
      values: repeated(',', 'a[in]=x'),
      references: repeated('a,', 'expand='),
      dots: repeated('.a', 'a'),
    },
  },
  {
    name: 'address of a call of a unified resource',
    covers: ['server/api/http/unified-path.ts#parseUnifiedPath'],
    lengthMax: QUERY,
    read: (input) => parseUnifiedPath('POST', input),
    rejects: withFailure,
    seeds: ['crm/contacts/1/merge', 'crm/contacts', 'a%2Fb/c'],
    attacks: { slashes: repeated('/'), percents: repeated('%41') },
  },
  {
    name: 'content type of a request',
    covers: ['server/api/pipeline/media-type.ts#isJsonType'],
    lengthMax: QUERY,
    read: (input) => [formatOf(input), isJsonType(input)],
    rejects: never,
    seeds: ['application/grpc-web+proto', 'application/json; charset=utf-8'],
    attacks: { blanks: repeated(' ', 'application/json', 'x'), plus: repeated('a+', 'application/') },
  },
  {
    name: 'page token',
    covers: ['foundation/database/keyset-pages.ts#decodePageToken'],
    lengthMax: QUERY,
    read: (input) => decodePageToken({ list: 'a' }, input),
    rejects: withFailure,
    seeds: ['bm90aGluZw', ''],
    attacks: { letters: repeated('A') },
  },
  {
    name: 'etag',
    covers: [],
    lengthMax: QUERY,
    read: parseEtag,
    rejects: never,
    seeds: ['"v1"', 'v2'],
    attacks: { digits: repeated('1', '"v') },
  },
  {
    name: 'API token and id',
    covers: [],
    lengthMax: QUERY,
    read: (input) => [hashToken(input), isUuid(input)],
    rejects: never,
    seeds: [`pbe_${'a'.repeat(38)}`],
    attacks: { letters: repeated('a'), tokens: repeated('pbe_') },
  },
]

const templates = (count: number, text: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, text]))
const definition = (config: object) => JSON.stringify(config)

const DEFINITIONS: readonly Reader[] = [
  {
    name: 'definition',
    covers: [
      'engine/definitions/check.ts#checkConfig',
      'engine/definitions/check.ts#checkOverride',
      'engine/definitions/check.ts#checkConfigAsync',
      'engine/definitions/check.ts#checkOverrideAsync',
    ],
    lengthMax: DEFINITION,
    read: async (input) => {
      const config = parseRequestJson(Buffer.from(input)) as JsonObject
      await yieldToEventLoop()
      await checkConfigAsync(config, 'integration', 'config', { owner: 'one' })
      return (await checkOverrideAsync({}, config, 'override', { owner: 'one' })).length
    },
    rejects: withFailure,
    isOffLoop: true,
    seeds: [
      definition({
        base_url: 'https://{{a}}.example',
        resources: { a: { list: { path: '/{{id}}', query: { b: '{{args.c:int}}' } } } },
      }),
      definition({
        pagination: { format: 'cursor', config: { cursor_path: 'a.b', cursor_key: 'c' } },
        headers: { a: null },
      }),
      definition({
        actions: { a: { steps: [{ type: 'transform', config: '$previous' }] } },
        retry: { max_attempts: 2 },
      }),
    ],
    attacks: {
      'open braces': (length) => definition({ base_url: `https://${'{{'.repeat(length / 2)}` }),
      'unknown placeholders': (length) =>
        definition({ query: templates(Math.ceil(length / 60_000), '{{zzz}}'.repeat(8_000)) }),
      'unknown settings': numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      'slashes at the end': (length) => definition({ base_url: `https://a${'/'.repeat(length)}x` }),
      placeholders: (length) =>
        definition({ resources: { a: { list: { path: '/{{id}}'.repeat(Math.min(9_000, length / 8)) } } } }),
      steps: (length) =>
        definition({
          actions: {
            a: {
              steps: Array.from({ length: length / 50 }, (_, at) => ({ type: 'transform', config: `$steps.x${at}` })),
            },
          },
        }),
      fields: (length) =>
        definition({
          credentials: {
            api_key: { config: { fields: Array.from({ length: length / 20 }, (_, at) => ({ name: `f${at}` })) } },
          },
        }),
      body: (length) =>
        definition({ resources: { a: { list: { body: Array.from({ length: length / 9 }, () => '{{a}}') } } } }),
    },
  },
  {
    name: 'template',
    covers: [
      'engine/expressions/placeholder.ts#lexTemplate',
      'engine/expressions/template.ts#findTemplateProblem',
      'engine/expressions/date-format.ts#findDateFormatProblem',
      'engine/expressions/url-template.ts#findBaseUrlProblem',
      'foundation/json/dot-path.ts#parseDotPath',
      'foundation/json/dot-path.ts#tryParseDotPath',
      'engine/formats/schema-types.ts#findPathProblem',
    ],
    lengthMax: 64 * KIB,
    read: (input) => {
      findBaseUrlProblem(input)
      listPlaceholderPaths(input)
      if (!('problem' in tryParseDotPath(input))) parseDotPath(input)
      if (lexTemplate(input).kind === 'problem') return undefined
      compileUrl(input, input)
      return compileTemplate(input)
    },
    rejects: withFailure,
    seeds: ['https://{{a}}.example/{{context.b[0].c|d?:e:int}}', '\\{{x}}', '{{args.a:bool}}'],
    attacks: {
      '{{': repeated('{{'),
      '}}': repeated('}}'),
      placeholders: repeated('{{a}}', 'https://'),
      alternatives: repeated('a|', '{{', '}}'),
      colons: repeated(': ', '{{a', '}}'),
      blanks: repeated(' ', '{{a:', 'int}}'),
      dots: repeated('a.', '{{', 'a}}'),
      slashes: repeated('/', 'https://a', 'x'),
      escapes: repeated('\\{{'),
    },
  },
  {
    name: 'expression',
    covers: ['engine/expressions/parse.ts#validateExpression', 'engine/expressions/parse.ts#parseAst'],
    lengthMax: 64 * KIB,
    read: validateExpression,
    rejects: never,
    seeds: ['$map(a.b[c = 1], function($x) { $x & "y" })', 'a.b.(c ~> $f(?))', '/x+/i'],
    attacks: {
      parentheses: repeated('('),
      dots: repeated('a.', '', 'a'),
      sums: repeated('1+', '', '1'),
      brackets: repeated('a['),
      quotes: repeated('"'),
      comments: repeated('/* '),
      backticks: repeated('`'),
      blanks: repeated(' ', '', '1'),
    },
  },
  {
    name: 'cron expression',
    covers: [
      'sync/schedules/check-cron-expression.ts#checkCronExpression',
      'sync/schedules/cron-expression.ts#parseCron',
    ],
    lengthMax: QUERY,
    read: (input) => checkCronExpression(input, { minTickGapSeconds: 1, from: new Date(0), field: 'a' }),
    rejects: never,
    seeds: ['*/5 0-6,12 L * 1#2', '@daily', '0 0 29 2 *', '1,2-5/2 * * JAN-MAR sun'],
    attacks: {
      lists: (length) => `${'1,'.repeat(Math.min(120, length / 2))}1 * * * *`,
      ranges: (length) => `${'0-59,'.repeat(Math.min(45, length / 5))}1 * * * *`,
      fields: repeated('* '),
      rare: () => '0 0 29 2 5#5',
    },
  },
  {
    name: 'resources of a sync job',
    covers: ['sync/jobs/resource.ts#readSyncResources', 'sync/jobs/check-resources.ts#checkResources'],
    lengthMax: REQUEST,
    read: (input) => checkResources(readSyncResources([parseRequestJson(Buffer.from(input))].flat() as Json[])).length,
    rejects: withFailure,
    seeds: [
      definition([
        { resource: 'a', method: 'list' },
        { resource: 'b', method: 'list', depends_on: 'a', query: { c: '{{resources.a.id}}' } },
      ]),
    ],
    attacks: {
      many: repeated('{"resource":"a","method":"list"},', '[', '{"resource":"a","method":"list"}]'),
      chain: (length) =>
        definition(
          Array.from({ length: Math.min(1_000, length / 60) }, (_, at) => ({
            resource: `r${at}`,
            method: 'list',
            depends_on: `r${at + 1}`,
          })),
        ),
      placeholders: (length) =>
        definition([{ resource: 'a', method: 'list', query: { a: '{{args.b}}'.repeat(length / 10) } }]),
    },
  },
  {
    name: 'schema of arguments',
    covers: ['sync/jobs/args.ts#checkArgsSchema'],
    lengthMax: REQUEST,
    read: (input) => checkArgsSchema(parseRequestJson(Buffer.from(input)) as JsonObject).length,
    rejects: withFailure,
    seeds: [
      definition({
        type: 'object',
        properties: { a: { type: ['string', 'null'], default: 'b', enum: ['b'] } },
        required: ['a'],
      }),
    ],
    attacks: {
      properties: numbered((index) => `"p${index}":{},`, '{"properties":{', '"z":{}}}'),
      keywords: numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
    },
  },
  {
    name: 'object in a text field',
    covers: ['server/api/services/values.convert.ts#findTextProblems'],
    lengthMax: REQUEST,
    read: (input) => findTextProblems('values_json', input).length,
    rejects: never,
    seeds: ['{"args":{"a":12345678901234567890}}', '', '[]'],
    attacks: {
      members: numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      numbers: repeated('12345678901234567890,', '{"a":[', '1]}'),
      'exponents that are too large': repeated('1e999,', '{"a":[', '1]}'),
      nesting: repeated('{"a":'),
    },
  },
  {
    name: 'event types',
    covers: ['platform/outbox/catalog.ts#checkEventTypes', 'platform/outbox/catalog.ts#checkAskedEventTypes'],
    lengthMax: REQUEST,
    read: (input) => checkAskedEventTypes(input.split(',', 200), 'a'),
    rejects: never,
    seeds: ['sync_job_run:*,*', 'webhook:disabled'],
    attacks: { stars: repeated('*,'), letters: repeated('a') },
  },
  {
    name: 'webhook filter',
    covers: ['webhooks/outbound/filter.ts#parseFilter'],
    lengthMax: REQUEST,
    read: (input) => {
      const filter = parseRequestJson(bytes(input))
      if (!isJsonObject(filter)) return 0
      const { passes, violations } = parseFilter(filter, 'filter')
      passes({ id: 'a', type: 'record:created', payload: filter, createdAt: new Date(0) })
      return violations.length
    },
    rejects: withFailure,
    seeds: [
      '{"type":{"$startsWith":"record:"},"payload.a[0].b":{"$in":[1,"x",null,true]},"$not":{"id":"a"}}',
      '{"$or":[{"created_at":{"$gte":"2026-01-01T00:00:00Z"}},{"$and":[{"payload.a":{"$exist":true,"$nin":["x"]}}]}]}',
    ],
    attacks: {
      fields: numbered((index) => `"payload.k${index}":1,`, '{', '"id":"a"}'),
      'unknown fields': numbered((index) => `"k${index}":1,`, '{', '"id":"a"}'),
      operators: numbered((index) => `"$k${index}":1,`, '{"id":{', '"$eq":"a"}}'),
      filters: repeated('{},', '{"$or":[', '{}]}'),
      operands: repeated('1,', '{"id":{"$in":[', '1]}}'),
      'a long path': repeated('.a', '{"payload', '":1}'),
      'a long text': repeated('a', '{"type":"', '"}'),
    },
  },
  {
    name: 'payload of an event, by the filter of a webhook',
    covers: [],
    lengthMax: PAYLOAD_BYTES_MAX,
    read: (input) => {
      const payload = parseRequestJson(bytes(input))
      if (!isJsonObject(payload)) return 0
      return LARGEST_FILTER.passes({ id: 'a', type: 'record:created', payload, createdAt: new Date(0) })
    },
    rejects: withFailure,
    seeds: ['{"a":[1,1.10,"x",null,true,{"b":1}]}', '{"a":12345678901234567890}'],
    attacks: {
      numbers: repeated('1,', '{"a":[', '1]}'),
      'numbers that are no doubles': repeated('1.10,', '{"a":[', '1]}'),
      'one long number': repeated('7', '{"a":[1.', '7]}'),
      texts: repeated('"a",', '{"a":[', '1]}'),
      'one long text': repeated('a', '{"a":["', '"]}'),
    },
  },
]

const LARGEST_FILTER = parseFilter(
  { $or: Array(25).fill({ 'payload.a': { $eq: -1.5, $gt: 2, $in: [-1, 'x'], $startsWith: 'aab' } }) },
  'filter',
)

const OPERATORS: readonly Reader[] = [
  {
    name: 'settings',
    covers: [],
    lengthMax: 64 * KIB,
    read: (input) =>
      readConfig(Object.fromEntries(input.split('\n').map((line) => line.split('=', 2) as [string, string]))),
    rejects: (error) => error instanceof ConfigError,
    seeds: ['PATCHBAY_PORT=80\nPATCHBAY_LOG_LEVEL=warn', 'PATCHBAY_EGRESS_ALLOW=10.0.0.0/8'],
    attacks: { lines: repeated('A=\n'), slashes: repeated('/', 'PATCHBAY_PUBLIC_URL=https://a') },
  },
  {
    name: 'keys of the vault',
    covers: ['foundation/secrets/key-ring.ts#parseKeyRing'],
    lengthMax: 64 * KIB,
    read: parseKeyRing,
    rejects: withError,
    seeds: [`a:${Buffer.alloc(32, 1).toString('base64')}`],
    attacks: { commas: repeated(','), entries: repeated('a:b,') },
  },
]

export const REQUEST_READERS: readonly Reader[] = [...MESSAGES, ...REQUESTS, ...DEFINITIONS, ...OPERATORS]
