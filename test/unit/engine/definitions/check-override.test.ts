import { describe, expect, test } from 'vitest'
import { findOverrideWarnings } from '../../../../src/engine/definitions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

const NOW = new Date('2026-11-29')

const CONFIG: JsonObject = {
  base_url: 'https://{{env.HOST?:api.example.com}}',
  api_versions: [{ version: 'v1', variable: 'API_VERSION', ends_at: '2026-06-01' }],
  headers: { 'User-Agent': '{{env.USER_AGENT|context.agent}}', Version: '{{env.API_VERSION?:v1}}' },
  credentials: {
    oauth2: {
      config: {
        client: { id: '{{environment_variables.CLIENT_ID}}', secret: '{{env.CLIENT_SECRET}}' },
        authorizeParams: { client: '{{env.CLIENT_ID}}' },
      },
    },
  },
  error_expression: 'env.STRICT and status >= 300 ? {"status": status}',
  resources: { projects: { list: { path: '/projects' }, get: { path: '/projects/{{id}}' } } },
}
const SET = { CLIENT_ID: 'c', CLIENT_SECRET: 's', API_VERSION: 'v2' }

const warningsOf = (override: JsonObject) =>
  findOverrideWarnings(CONFIG, override, '', NOW).map(({ field, description }) => `${field} ${description}`)

test('an override that sets what the definition reads has no warning', () => {
  expect(warningsOf({ environment_variables: SET })).toEqual([])
})

describe('a variable', () => {
  test.each<[string, JsonObject, string[]]>([
    [
      'is missing',
      { CLIENT_ID: null, CLIENT_SECRET: null },
      [
        'CLIENT_ID is not set: it is read by credentials.oauth2.config.client.id and 1 more',
        'CLIENT_SECRET is not set: it is read by credentials.oauth2.config.client.secret',
      ],
    ],
    [
      'is misspelt',
      { CLIENT_SECRET: null, CLIENT_SECRT: 's' },
      [
        'CLIENT_SECRT is set, but nothing in the definition reads it, did you mean CLIENT_SECRET?',
        'CLIENT_SECRET is not set: it is read by credentials.oauth2.config.client.secret',
      ],
    ],
    [
      'that has an alternative is misspelt',
      { USER_AGNT: 'x' },
      ['USER_AGNT is set, but nothing in the definition reads it, did you mean USER_AGENT?'],
    ],
    ['is unknown', { UNRELATED_TOKEN: 'x' }, ['UNRELATED_TOKEN is set, but nothing in the definition reads it']],
    ['is read by an expression', { STRICT: true }, []],
    ['that has a default is set', { HOST: 'eu.example.com' }, []],
  ])('%s', (_what, variables, expected) => {
    const warnings = warningsOf({ environment_variables: { ...SET, ...variables } })
    expect(warnings).toEqual(expected.map((text) => `environment_variables.${text}`))
  })

  test('is read by what an override adds', () => {
    const override = {
      environment_variables: { ...SET, REGION_TOKEN: 'x' },
      headers: { region: '{{env.REGION_TOKEN}}' },
    }
    expect(warningsOf(override)).toEqual([])
  })

  test('that nothing sets is warned of where the override adds the read', () => {
    const override = { environment_variables: SET, headers: { region: '{{env.REGION}}' } }
    expect(warningsOf(override)).toEqual(['environment_variables.REGION is not set: it is read by headers.region'])
  })
})

describe('an override that adds', () => {
  const method = { path: '/x' }

  test.each<[string, JsonObject, string[]]>([
    [
      'a resource of nearly the same name',
      { project: { list: method } },
      ['project adds a resource, did you mean projects?'],
    ],
    [
      'a method of nearly the same name',
      { projects: { lists: method } },
      ['projects.lists adds a method, did you mean list?'],
    ],
    ['a resource of another name', { invoices: { list: method } }, []],
    ['a method of another name', { projects: { archive: { ...method, method: 'POST' } } }, []],
    ['a resource in place of one that it removes', { projects: null, project: { list: method } }, []],
    ['nothing: it changes a method', { projects: { list: method } }, []],
  ])('%s', (_what, resources, expected) => {
    expect(warningsOf({ environment_variables: SET, resources })).toEqual(expected.map((text) => `resources.${text}`))
  })
})

test('an override that leaves the version of a definition as it is, is warned of its end', () => {
  const { API_VERSION: _unset, ...variables } = SET
  expect(warningsOf({ environment_variables: variables })).toEqual([
    'api_versions[0] v1 has ended on 2026-06-01: set the variable API_VERSION to a later version',
  ])
})
