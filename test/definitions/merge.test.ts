import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/base/index.ts'
import { resolveConfig } from '../../src/definitions/index.ts'

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
