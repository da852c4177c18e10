import { describe, expect, test } from 'vitest'
import { compilePlan, integrationConfigSchema } from '../../../../src/engine/definitions/index.ts'

const methodOf = (config: Parameters<typeof compilePlan>[0], resource = 'things', method = 'list') =>
  compilePlan(config).resources.get(resource)?.get(method)

test.each([
  [{}, {}, 20_000],
  [{ timeout: 5 }, {}, 5_000],
  [{ timeout: 5 }, { timeout: 2.5 }, 2_500],
  [{ timeout: 5 }, { timeout: null }, 20_000],
])('of the timeouts %j of the integration and %j of the method %i ms hold', (config, method, timeoutMs) => {
  const plan = methodOf({ ...config, resources: { things: { list: { path: '/x', ...method } } } })
  expect(plan).toMatchObject({ timeoutMs })
})

describe('a plan has every precedence decided', () => {
  const config = {
    pagination: { format: 'page', config: { page_key: 'p' } },
    rate_limit: { is_rate_limited: 'status = 420' },
    error_expression: 'integration',
    resources: {
      things: {
        list: { path: '/x', id_path: 'meta.id' },
        get: { path: '/x/{{id}}' },
        create: { method: 'post', path: '/x', error_expression: null, rate_limit: null },
        search: { path: '/s', pagination: { format: 'link_header' }, error_expression: 'method' },
        export: { path: '/e', pagination: null },
      },
    },
  }

  test.each([
    ['list', { isList: true, isWrite: false, verb: 'GET', errorExpression: 'integration', idPath: ['meta', 'id'] }],
    ['get', { isList: false, isWrite: false, verb: 'GET', pagination: undefined, idPath: ['id'] }],
    [
      'create',
      {
        isList: false,
        isWrite: true,
        verb: 'POST',
        errorExpression: undefined,
        rateLimit: { isRateLimited: undefined },
      },
    ],
    [
      'search',
      { isList: true, isWrite: true, errorExpression: 'method', rateLimit: { isRateLimited: 'status = 420' } },
    ],
    ['export', { isList: false, pagination: undefined }],
  ])('%s', (name, expected) => {
    expect(methodOf(config, 'things', name)).toMatchObject(expected)
  })

  test('pagination is the integration’s where the method has none', () => {
    expect(methodOf(config)?.pagination?.format).toBe('page')
    expect(methodOf(config, 'things', 'search')?.pagination?.format).toBe('link_header')
  })
})

test('a URL without placeholders is finished when the plan is', () => {
  const config = { base_url: 'https://api.example.com/', resources: { things: { list: { path: 'x' } } } }
  expect(methodOf(config)?.url?.constant).toBe('https://api.example.com/x')
})

test('a method with another name is marked as reading', () => {
  const search = { method: 'POST', path: '/search' }
  const config = {
    resources: { things: { search, find: { ...search, read_only: true }, get: { path: '/x', read_only: false } } },
  }
  const isWrite = (method: string) => methodOf(config, 'things', method)?.isWrite
  expect(['search', 'find', 'get'].map(isWrite)).toEqual([true, false, true])
})

test('a method knows what it reads of parent records, in its own templates and those it shares', () => {
  const config = {
    base_url: 'https://{{resources.sites.host}}.example.com',
    authorization: { format: 'header', config: { header_name: 'x-site', header_value: '{{resources.sites.key}}' } },
    resources: {
      things: {
        list: { path: '/{{resources.crm.accounts.id}}/things', query: { of: '{{query.of}}' } },
        get: { path: '/things/{{id}}' },
      },
    },
  }
  const shared = [
    ['sites', 'host'],
    ['sites', 'key'],
  ]
  expect(methodOf(config)?.parentPaths).toEqual([...shared, ['crm', 'accounts', 'id']])
  expect(methodOf(config, 'things', 'get')?.parentPaths).toEqual(shared)
})

test('ways of connecting keep their order, label and fields', () => {
  const plan = compilePlan({
    credentials: { oauth2: { label: 'Sign in', config: {} }, api_key: { config: { verification: { path: '/me' } } } },
  })
  expect(
    plan.credentials.map(({ format, label, fields, verification }) => [
      format,
      label,
      fields.length,
      verification?.verb,
    ]),
  ).toEqual([
    ['oauth2', 'Sign in', 0, undefined],
    ['api_key', undefined, 1, 'GET'],
  ])
})

test('a config that does not pass its schema is rejected by name', () => {
  expect(() => compilePlan({ pagination: { format: 'nope' } })).toThrow('DEFINITION_INVALID')
})

test('the JSON Schema is made of the objects that validate', () => {
  const schema = JSON.stringify(integrationConfigSchema())
  expect(schema).toContain('"Pagination"')
  expect(integrationConfigSchema()).toMatchObject({
    type: 'object',
    additionalProperties: false,
    properties: { base_url: { type: 'string', description: expect.any(String) } },
  })
})
