import { describe, expect, test } from 'vitest'
import { resolveConfig } from '../../../../src/engine/definitions/index.ts'
import { getAtPath, type JsonObject } from '../../../../src/foundation/json/index.ts'

const BASE = {
  headers: { A: '1', B: '2' },
  query: {},
  pagination: { format: 'page', config: { page_key: 'p' } },
  credentials: { oauth2: { config: { optional_scope: ['a', 'b'], client: { id: 'i' } } } },
  resources: { things: { list: { path: '/x', headers: { C: '3' } } } },
}

describe('an override is merged deeply', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['objects merge', { headers: { B: '3' } }, { ...BASE, headers: { A: '1', B: '3' } }],
    [
      'null removes',
      { headers: { A: null }, pagination: null },
      { ...BASE, headers: { B: '2' }, pagination: undefined as never },
    ],
    ['removing what is not there is nothing', { icon: null }, BASE],
    [
      'lists replace',
      { credentials: { oauth2: { config: { optional_scope: ['c'] } } } },
      { ...BASE, credentials: { oauth2: { config: { optional_scope: ['c'], client: { id: 'i' } } } } },
    ],
    ['an empty override changes nothing', {}, BASE],
    [
      'keys of its own stay',
      { tags: ['t'], environment_variables: { A: 1 } },
      { ...BASE, tags: ['t'], environment_variables: { A: 1 } },
    ],
    [
      'on a method, null is a setting: it does not bring back what the integration says',
      { resources: { things: { list: { pagination: null, headers: { B: null }, path: null } } } },
      { ...BASE, resources: { things: { list: { headers: { C: '3', B: null }, pagination: null } } } },
    ],
    [
      'prototypes are out of reach',
      JSON.parse(
        '{"__proto__": {"x": 1}, "resources": {"things": {"list": {"headers": {"__proto__": null}}}}}',
      ) as JsonObject,
      BASE,
    ],
  ])('%s', (_what, override, expected) => {
    expect(resolveConfig(BASE, override).config).toEqual(expected)
  })

  test('and neither document is changed', () => {
    const before = JSON.stringify(BASE)
    resolveConfig(BASE, { headers: { A: 'x' }, resources: { things: { list: { pagination: null } } } })
    expect(JSON.stringify(BASE)).toBe(before)
  })
})

test('every leaf tells which document it came from', () => {
  const override = {
    headers: { B: '3', 'X.Y': 'z' },
    tags: ['t'],
    environment_variables: {},
    credentials: { oauth2: { config: { optional_scope: ['c'] } } },
    resources: { things: { list: { pagination: null } } },
  }
  expect(resolveConfig(BASE, override).layers).toEqual({
    'headers.A': 'integration',
    'headers.B': 'override',
    'headers["X.Y"]': 'override',
    query: 'integration',
    'pagination.format': 'integration',
    'pagination.config.page_key': 'integration',
    'credentials.oauth2.config.optional_scope': 'override',
    'credentials.oauth2.config.client.id': 'integration',
    'resources.things.list.path': 'integration',
    'resources.things.list.headers.C': 'integration',
    'resources.things.list.pagination': 'override',
    tags: 'override',
    environment_variables: 'override',
  })
})

test('an override of one shape of credentials reaches a definition of the other', () => {
  const config = { client: { id: 'a' }, optional_scope: ['x'] }
  const single = { credentials: { format: 'oauth2', config } }
  const map = { credentials: { oauth2: { config, label: 'OAuth' } } }
  const change = { optional_scope: ['y'] }
  const changed = { client: { id: 'a' }, optional_scope: ['y'] }
  const merged = (below: JsonObject, above: JsonObject) => resolveConfig(below, above)
  expect(merged(single, { credentials: { oauth2: { config: change } } })).toEqual({
    config: { credentials: { oauth2: { config: changed } } },
    layers: {
      'credentials.oauth2.config.client.id': 'integration',
      'credentials.oauth2.config.optional_scope': 'override',
    },
  })
  expect(merged(map, { credentials: { format: 'oauth2', config: change } }).config).toEqual({
    credentials: { oauth2: { config: changed, label: 'OAuth' } },
  })
  expect(merged(single, { credentials: { config: change } }).config).toEqual({
    credentials: { format: 'oauth2', config: changed },
  })
})

describe('other addresses of the same origin follow an overridden base_url', () => {
  const moved = (from: string, own: string, to: string) => {
    const definition = { base_url: from, resources: { a: { get: { base_url: own, path: '/x' } } } }
    const { config, layers } = resolveConfig(definition, { base_url: to })
    return [getAtPath(config, ['resources', 'a', 'get', 'base_url']), layers['resources.a.get.base_url']]
  }

  test.each<[string, string, string, string]>([
    ['https://a.com/v1', 'https://a.com/v2', 'http://b.test/v1', 'http://b.test/v2'],
    ['https://a.com/v1', 'https://a.com/v2', 'http://b.test/prefix/v1/', 'http://b.test/prefix/v2'],
    ['https://a.com/v1', 'https://a.com/v2', 'http://b.test:8080', 'http://b.test:8080/v2'],
    ['https://a.com/v1', 'https://a.com/v2', 'http://b.test/emulator', 'http://b.test/v2'],
    ['https://a.com', 'https://a.com/v2', 'http://b.test/emulator', 'http://b.test/emulator/v2'],
    ['https://a.com/v1/{{sid}}', 'https://a.com/v1', 'http://b.test', 'http://b.test/v1'],
    ['https://a.com/v1', 'https://a.com/v1', 'http://b.test/x', 'http://b.test/x'],
    ['https://A.com', 'https://a.com/v2', 'http://b.test', 'http://b.test/v2'],
    ['https://{{sub}}.a.com/v1', 'https://{{sub}}.a.com/v2', 'https://b.test/v1', 'https://b.test/v2'],
    ['{{context.url}}/api', '{{context.url}}', 'https://b.test/api', 'https://b.test'],
  ])('%s and %s moved to %s: %s', (from, own, to, expected) => {
    expect(moved(from, own, to)).toEqual([expected, 'override'])
  })

  test.each([
    'https://b.a.com/v2',
    'http://a.com/v2',
    'https://a.com:8443/v2',
    'https://a.company/v2',
    'https://{{sub}}.a.com',
  ])('but not %s of another origin', (own) => {
    expect(moved('https://a.com/v1', own, 'http://b.test/v1')).toEqual([own, 'integration'])
  })

  test('nor one that the override names itself, nor data that is called base_url', () => {
    const get = { path: '/x', base_url: 'https://a.com/v2', body: { base_url: 'https://a.com' } }
    const override = { base_url: 'https://b.test', resources: { a: { get: { base_url: 'https://c.test' } } } }
    const { config } = resolveConfig({ base_url: 'https://a.com', resources: { a: { get } } }, override)
    expect(getAtPath(config, ['resources', 'a', 'get'])).toEqual({ ...get, base_url: 'https://c.test' })
  })
})
