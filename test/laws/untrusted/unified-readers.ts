import { createEvaluator } from '../../../src/engine/expressions/index.ts'
import { checkMapping, MAPPING_LENGTH_MAX } from '../../../src/engine/unified/check-mapping.ts'
import { compileEnums } from '../../../src/engine/unified/enums.ts'
import {
  checkMappingLayer,
  checkUnifiedQuery,
  compileMapping,
  mergeMappings,
  parseFixture,
  parseModel,
} from '../../../src/engine/unified/index.ts'
import { mapRecords } from '../../../src/engine/unified/map-records.ts'
import { MODEL_LENGTH_MAX } from '../../../src/engine/unified/model-schema.ts'
import { validateBody } from '../../../src/engine/unified/validate-body.ts'
import {
  isJsonObject,
  type Json,
  type JsonObject,
  JsonTextError,
  parseJsonInSlices,
} from '../../../src/foundation/json/index.ts'
import { parseRequestJson } from '../../../src/server/api/messages/json-text.ts'
import { customers, planOf, SHOP_MODEL } from '../../unit/engine/unified/engine-support.ts'
import { KIB, MIB, numbered, type Reader, repeated, withFailure } from './reader.ts'

const LIST = { resource: 'people', method: 'list', response: { fields: { id: 'id', name: 'a & b' } } }
const RECORD = { id: 1, name: 'Ada', seen_at: '2024-01-02T03:04:05Z', emails: [{ address: 'a@b.c' }], tags: ['a'] }
const FIELDS = Object.keys(customers().schema.properties)
const PLAN = planOf({
  response: { fields: Object.fromEntries(FIELDS.map((name) => [name, name])) },
  enums: { status: { map: { A: 'open' } } },
  custom_fields: { mode: 'rest', omit: ['x*'] },
})
/** Paths alone: no child process is started. */
const evaluator = createEvaluator()

function documentOf(input: string): JsonObject {
  const json = parseRequestJson(Buffer.from(input))
  return isJsonObject(json) ? json : {}
}

function written(make: (length: number) => Json): (length: number) => string {
  return (length) => JSON.stringify(make(length))
}

function entries(count: number, make: (at: number) => readonly [string, Json]): JsonObject {
  return Object.fromEntries(Array.from({ length: Math.max(1, Math.floor(count)) }, (_, at) => make(at)))
}

function modelOf(properties: JsonObject, $defs: JsonObject): JsonObject {
  return { name: 'a', $defs, resources: { a: { methods: ['list'], schema: { type: 'object', properties } } } }
}

export const UNIFIED_READERS: readonly Reader[] = [
  {
    name: 'unified model',
    covers: ['engine/unified/model.ts#parseModel', 'engine/unified/model-schema.ts#checkModel'],
    lengthMax: MODEL_LENGTH_MAX,
    read: (input) => parseModel(documentOf(input)).resources.size,
    rejects: withFailure,
    seeds: [JSON.stringify(SHOP_MODEL)],
    attacks: {
      'shared schemas that double': written((length) =>
        modelOf(
          { a: { $ref: '#/$defs/d0' } },
          entries(Math.min(200, length / 100), (at) => {
            const next = { $ref: `#/$defs/d${at + 1}` }
            return [`d${at}`, { type: 'object', properties: { b: next, c: next } }]
          }),
        ),
      ),
      fields: written((length) =>
        modelOf(
          entries(length / 30, (at) => [`f${at}`, { type: 'string' }]),
          {},
        ),
      ),
      'unknown settings': numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      nesting: repeated('{"items":', '{"resources":{"a":{"schema":', '}}}'),
    },
  },
  {
    name: 'unified mapping',
    covers: ['engine/unified/check-mapping.ts#checkMappingLayer', 'engine/unified/check-mapping.ts#checkMapping'],
    lengthMax: MAPPING_LENGTH_MAX,
    read: (input) => {
      const config = documentOf(input)
      const merged = mergeMappings([{ layer: 'base', config }])
      const found = checkMapping(merged.config, { resource: customers(), method: 'list' }, 'config')
      if (found.length === 0) compileMapping(merged, customers(), 'list')
      return checkMappingLayer(config, 'config').length + found.length
    },
    rejects: withFailure,
    seeds: [
      JSON.stringify(LIST),
      JSON.stringify({ ...LIST, before: [{ name: 'a', type: 'transform', expression: '1' }] }),
    ],
    attacks: {
      expressions: written((length) => ({
        ...LIST,
        response: { fields: { id: 'id', custom_fields: entries(length / 30, (at) => [`f${at}`, 'a.b & "c"']) } },
      })),
      'long expressions': written((length) => ({
        ...LIST,
        response: {
          fields: { id: 'id', custom_fields: entries(length / 8_000, (at) => [`f${at}`, `a${'&a'.repeat(3_900)}`]) },
        },
      })),
      'values of an enumeration': written((length) => ({
        ...LIST,
        enums: { status: { map: entries(length / 20, (at) => [`v${at}`, 'frozen']) } },
      })),
      'fields that the resource lacks': written((length) => ({
        ...LIST,
        response: { fields: entries(Math.min(490, length / 20), (at) => [`nmae${at}`, 'a']) },
      })),
      'unknown settings': numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      nesting: repeated('{"a":', '{"response":{"fields":', '}}'),
    },
  },
  {
    name: 'records of a provider, mapped',
    covers: ['engine/unified/custom-fields.ts#readCustomFields'],
    lengthMax: 16 * MIB,
    read: async (input) => {
      const json = await parseJsonInSlices(input)
      const records = Array.isArray(json) ? (json as readonly Json[]) : [json]
      return (await mapRecords({ evaluator }, PLAN, records, { calledAt: '2026-01-01T00:00:00.000Z', context: {} }))
        .records.length
    },
    rejects: (error) => error instanceof JsonTextError,
    seeds: [JSON.stringify(RECORD), JSON.stringify([RECORD, { ...RECORD, status: 'A' }])],
    attacks: {
      records: (length) => JSON.stringify(Array.from({ length: length / 400 }, () => RECORD)),
      'wrong values': (length) =>
        JSON.stringify(Array.from({ length: length / 200 }, () => ({ tags: [{}], age: 'x' }))),
      'a list': written((length) => ({ id: 1, tags: Array.from({ length: length / 4 }, () => 'a') })),
      'keys beyond the schema': written((length) => entries(length / 20, (at) => [`key${at}`, at])),
      'keys of a nested object': written((length) => ({ address: entries(length / 20, (at) => [`key${at}`, at]) })),
      'a time': repeated('2', '{"seen_at":"', '"}'),
      'blanks of a number': repeated(' ', '{"balance":"1', '1"}'),
    },
  },
  {
    name: 'body of a unified write',
    covers: [],
    lengthMax: 4 * MIB,
    read: (input) => {
      const resource = customers()
      const body = parseRequestJson(Buffer.from(input))
      return validateBody(resource, 'create', body, {
        enums: compileEnums(resource.node, {}),
        required: ['name'],
        idParts: new Map([['owner', 2]]),
      }).outgoing
    },
    rejects: withFailure,
    seeds: [JSON.stringify({ name: 'Ada', emails: [{ address: 'a@b.c' }], owner: { id: 'a:1' } })],
    attacks: {
      'unknown fields': numbered((index) => `"nmae${index}":1,`, '{', '"z":1}'),
      'a list': written((length) => ({ name: 'a', emails: Array.from({ length: length / 4 }, () => ({})) })),
      'an address': repeated('@', '{"name":"a","emails":[{"address":"', '"}]}'),
      nesting: repeated('{"a":', '{"custom_fields":', '}'),
    },
  },
  {
    name: 'query of a unified call',
    covers: ['engine/unified/request-query.ts#checkUnifiedQuery', 'engine/unified/request-query.ts#readUnifiedQuery'],
    lengthMax: 16 * KIB,
    read: (input) => checkUnifiedQuery(documentOf(input)).violations.length,
    rejects: withFailure,
    seeds: [
      '{"status": "open", "updated_at": {"gt": "2026-01-01"}, "sort_by": "-name", "expand": "owner,account", "limit": "5"}',
    ],
    attacks: {
      filters: numbered((index) => `"f${index}":"1",`, '{', '"z":"1"}'),
      operators: numbered((index) => `"o${index}":"1",`, '{"f":{', '"z":"1"}}'),
      values: repeated('1,', '{"f":{"in":"', '"}}'),
      'fields to expand': repeated('a,', '{"expand":"', '"}'),
      'a name': repeated('a.', '{"', 'a":"1"}'),
    },
  },
  {
    name: 'fixture of a mapping',
    covers: ['engine/unified/fixture.ts#parseFixture'],
    lengthMax: MIB,
    read: (input) => parseFixture(documentOf(input), 'fixture').exchanges.length,
    rejects: withFailure,
    seeds: [
      '{"method": "list", "exchanges": [{"request": {"method": "GET", "path": "/a"}, "response": {"status": 200, "body": {}}}]}',
    ],
    attacks: {
      exchanges: repeated('{"response":{}},', '{"method":"list","exchanges":[', '{"response":{}}]}'),
      'unknown settings': numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      'a body': repeated('[', '{"method":"list","exchanges":[{"response":{"body":', '}}]}'),
    },
  },
]
