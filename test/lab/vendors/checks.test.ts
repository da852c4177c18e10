import { describe, expect, test } from 'vitest'
import { SHIPPED_NAMES } from '../../../src/engine/catalog/index.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import type { GoldenCall, GoldenRequest } from '../../unit/engine/catalog/golden-file.ts'
import { checkMethod } from './check-definition.ts'
import { checkRequest } from './check-request.ts'
import exceptions from './exceptions.json' with { type: 'json' }
import { findOperation, listOperations, type Operation } from './operations.ts'
import vendors from './vendors.json' with { type: 'json' }

const DOCUMENT: JsonObject = {
  openapi: '3.0.3',
  servers: [{ url: 'https://api.example.com/v1' }],
  paths: {
    '/people': {
      parameters: [{ in: 'header', name: 'X-Version', required: true, schema: { type: 'string' } }],
      get: {
        parameters: [
          { in: 'query', name: 'state', schema: { type: 'string', enum: ['open', 'done'] } },
          { in: 'query', name: 'team', required: true, schema: { type: 'string' } },
          { in: 'query', name: 'limit', schema: { type: 'integer', maximum: 100 } },
          { in: 'query', name: 'ids', schema: { type: 'array', items: { type: 'integer' } } },
        ],
        responses: {
          200: {
            content: {
              'application/json': {
                schema: {
                  type: 'object',
                  properties: {
                    data: { type: 'array', items: { $ref: '#/components/schemas/Person' } },
                    total: { type: 'integer' },
                  },
                },
              },
            },
          },
        },
      },
      post: {
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Person' } } } },
        responses: { 201: { content: { 'application/vnd.api+json': { schema: {} } } } },
      },
    },
    '/people/{id}': { get: { deprecated: true, responses: {} } },
    '/people/me': { get: { responses: {} } },
  },
  components: {
    schemas: {
      Person: {
        type: 'object',
        required: ['key', 'name'],
        properties: {
          key: { type: 'string', readOnly: true },
          name: { type: 'string', nullable: true },
          status: { type: 'string', enum: ['active'] },
          address: { type: 'object', properties: { city: { type: 'string' } } },
        },
      },
    },
  },
}
const OPERATIONS = listOperations(DOCUMENT, { files: [] })
const PEOPLE = 'https://api.example.com/v1/people'
const HEADERS = { accept: 'application/json', 'x-version': '1' }
const POST_HEADERS = { ...HEADERS, accept: 'application/vnd.api+json', 'content-type': 'application/json' }

describe('requests', () => {
  test.each<[string, Partial<GoldenRequest>, string[]]>([
    ['fits', { url: `${PEOPLE}?team=a&state=open&limit=5&ids=1,2` }, []],
    ['has a list as several parameters', { url: `${PEOPLE}?team=a&ids[]=1&ids[]=2` }, []],
    ['has a parameter too many', { url: `${PEOPLE}?team=a&sort=name` }, ['query unknown: sort']],
    ['lacks a parameter', { url: PEOPLE }, ['query missing: team']],
    ['has a value out of range', { url: `${PEOPLE}?team=a&limit=500` }, ['query value: limit must be <= 100']],
    [
      'has a value that is not listed',
      { url: `${PEOPLE}?team=a&state=gone` },
      ['query value: state must be equal to one of the allowed values (open, done)'],
    ],
    ['lacks a header', { url: `${PEOPLE}?team=a`, headers: { accept: '*/*' } }, ['header missing: x-version']],
    [
      'accepts another media type',
      { method: 'POST', headers: { ...POST_HEADERS, accept: 'application/json' }, body: { name: 'Ada' } },
      ['accept: application/json where the answer is application/vnd.api+json'],
    ],
    [
      'has a body of another media type',
      { method: 'POST', headers: { ...POST_HEADERS, 'content-type': 'text/plain' }, body: 'Ada' },
      ['body type: text/plain where application/json is taken'],
    ],
    [
      'has a body that fits, without what only answers have',
      { method: 'POST', headers: POST_HEADERS, body: { name: null } },
      [],
    ],
    [
      'has unknown properties',
      { method: 'POST', headers: POST_HEADERS, body: { name: 'Ada', tags: [], address: { zip: '1' } } },
      ['body unknown: tags', 'body unknown: address.zip'],
    ],
    [
      'has a body of another type',
      { method: 'POST', headers: POST_HEADERS, body: { name: 'Ada', address: 'Bern' } },
      ['body value: /address must be object'],
    ],
    [
      'lacks a property',
      { method: 'POST', headers: POST_HEADERS, body: {} },
      ["body value:  must have required property 'name'"],
    ],
    ['is of a deprecated operation', { url: `${PEOPLE}/7` }, ['operation deprecated']],
    ['is of a path without variable, which goes before one with', { url: `${PEOPLE}/me` }, []],
  ])('a request that %s', (_what, request, expected) => {
    const sent = { method: 'GET', url: PEOPLE, headers: HEADERS, ...request }
    expect(checkRequest(operationOf(sent), sent)).toEqual(expected)
  })

  test('a request of a path that the document lacks has no operation', () => {
    expect(findOperation(OPERATIONS, 'GET', 'https://api.example.com/v1/teams')).toBeUndefined()
  })
})

describe('methods', () => {
  test.each<[string, JsonObject, string[]]>([
    [
      'fits',
      {
        query_schema: { properties: { state: { type: 'string', enum: ['open'] }, team: {} }, required: ['team'] },
        response_path: 'data',
        id_path: 'key',
      },
      [],
    ],
    [
      'offers what is unknown',
      { query_schema: { properties: { sort: { type: 'string' } } }, response_path: 'data', id_path: 'key' },
      ['query_schema unknown: sort'],
    ],
    [
      'offers what goes elsewhere',
      {
        path: '/{{query.team_id}}',
        query_schema: { properties: { team_id: {} } },
        response_path: 'data',
        id_path: 'key',
      },
      [],
    ],
    [
      'offers a value that is not listed',
      { query_schema: { properties: { state: { enum: ['open', 'gone'] } } }, response_path: 'data', id_path: 'key' },
      ['query_schema state value: gone'],
    ],
    [
      'offers another type',
      { query_schema: { properties: { limit: { type: 'boolean' } } }, response_path: 'data', id_path: 'key' },
      ['query_schema limit type: boolean where it is integer'],
    ],
    [
      'does not require what is',
      { query_schema: { properties: { team: {} } }, response_path: 'data', id_path: 'key' },
      ['query_schema not required: team'],
    ],
    ['finds no records', { response_path: 'items' }, ['response_path: no items in the answer']],
    ['finds no list', { response_path: 'total' }, ['response_path: integer, no array']],
    ['finds no ids', { response_path: 'data' }, ['id_path: no id in a record (key, name, status, address)']],
  ])('a list that %s', (_what, method, expected) => {
    expect(
      checkMethod(operationOf({ method: 'GET', url: PEOPLE, headers: {} }), method, callOf({ url: PEOPLE })),
    ).toEqual(expected)
  })

  test.each<[string, JsonObject, JsonObject, string[]]>([
    ['fits', { name: { type: 'string' } }, { name: 'Ada' }, []],
    [
      'offers what is unknown',
      { name: {}, tags: { type: 'array' } },
      { name: 'Ada' },
      ['body_schema not required: name', 'body_schema unknown: tags'],
    ],
    [
      'offers a value that is not listed',
      { status: { enum: ['active', 'gone'] } },
      { status: 'active' },
      ['body_schema status value: gone'],
    ],
    [
      'offers another type',
      { address: { type: 'string' } },
      {},
      ['body_schema address type: string where it is object'],
    ],
  ])('a create whose body %s', (what, properties, body, expected) => {
    const method = { body_schema: { properties, required: what === 'fits' ? ['name'] : [] } }
    const operation = operationOf({ method: 'POST', url: PEOPLE, headers: {} })
    expect(checkMethod(operation, method, { ...callOf({ method: 'POST', body }), body })).toEqual(expected)
  })
})

test('documents and exceptions are of shipped definitions', () => {
  const names = [vendors, exceptions].flatMap((file) => Object.keys(file))
  expect(names.filter((name) => !SHIPPED_NAMES.includes(name))).toEqual([])
  expect(Object.keys(exceptions).filter((name) => !(name in vendors))).toEqual([])
})

function callOf(request: Partial<GoldenRequest>): GoldenCall {
  return { call: 'people.list', request: { method: 'GET', url: PEOPLE, headers: {}, ...request } }
}

function operationOf({ method, url }: GoldenRequest): Operation {
  const operation = findOperation(OPERATIONS, method, url)
  if (operation === undefined) throw new Error(`no operation for ${method} ${url}`)
  return operation
}
