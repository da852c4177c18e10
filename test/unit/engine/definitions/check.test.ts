import { describe, expect, test } from 'vitest'
import { checkConfig, checkOverride } from '../../../../src/engine/definitions/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import SPECIFIED from './golden/specified-config.json' with { type: 'json' }

const lines = (config: JsonObject) =>
  checkConfig(config, 'integration', 'config').map(({ field, rule }) => `${field} ${rule}`)

/** Findings of a config with one method. */
const ofMethod = (method: Json, rest: JsonObject = {}) => lines({ ...rest, resources: { things: { list: method } } })

test("the specification's own shapes have no findings", () => {
  expect(checkConfig(SPECIFIED as JsonObject, 'integration', 'config')).toEqual([])
})

test('everything that is wrong is reported at once, with a hint where a slip is likely', () => {
  const findings = checkConfig(
    {
      base_ulr: 'https://api.example.com',
      headers: { 'bad header': 'x' },
      authorization: { format: 'baerer' },
      rate_limit: { is_rate_limited: 'status = ' },
      resources: {
        things: { list: { path: '/{{id', method: 'FETCH', pagination: { format: 'page', config: { page_kye: 'p' } } } },
      },
    },
    'integration',
    'config',
  )
  expect(findings.map(({ field, description }) => `${field} ${description}`)).toEqual([
    'config.headers["bad header"] must be a header name',
    'config.authorization.format must be one of bearer, basic, digest, header, query, oauth1, aws_sigv4, jwt, none, did you mean bearer?',
    'config.rate_limit.is_rate_limited is not a JSONata expression: Unexpected end of expression at position 9',
    'config.resources.things.list.method must be one of GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, QUERY, PROPFIND, PROPPATCH, MKCOL, MKCALENDAR, COPY, MOVE, LOCK, UNLOCK, REPORT, SEARCH, ACL',
    'config.resources.things.list.path opens {{ without closing it',
    'config.resources.things.list.pagination.config.page_kye is not a known setting, did you mean page_key?',
    'config.base_ulr is not a known setting, did you mean base_url?',
    'config.resources.things.list.pagination.config.page_key is required, unless a template of the definition places {{pagination.page}} itself',
  ])
})

test('a timeout that a call could not outlast is a finding, on the integration and on a method', () => {
  const config = { timeout: 30, resources: { things: { list: { path: '/', timeout: 60 } } } }
  const findings = checkConfig(config, 'integration', 'config').map(
    ({ field, description }) => `${field} ${description}`,
  )
  expect(findings.sort()).toEqual([
    'config.resources.things.list.timeout must be at most 29: the call it is made for ends after 30 seconds',
    'config.timeout must be at most 29: the call it is made for ends after 30 seconds',
  ])
})

describe('a key that every object inherits is an unknown field', () => {
  test.each(['__proto__', 'constructor', 'toString'])('%s at any depth', (key) => {
    const strange = JSON.parse(`{"${key}": {"prototype": {"x": 1}}}`)
    const list = { path: '/a', ...strange, pagination: { format: 'page', config: { page_key: 'p', ...strange } } }
    const config = { ...strange, base_url: 'https://a.example.com', resources: { a: { list } }, retry: strange }
    const paths = ['', '.resources.a.list', '.resources.a.list.pagination.config', '.retry']
    expect(lines(config)).toEqual(expect.arrayContaining(paths.map((path) => `config${path}.${key} unknown_field`)))
  })
})

describe('a finding names the path and the rule', () => {
  test.each<[string, JsonObject, string[]]>([
    [
      'addresses of pages that no browser should open',
      { logo: 'javascript:alert(1)', icon: 'notaurl' },
      ['config.logo url.http', 'config.icon url.http'],
    ],
    ['no scheme', { base_url: 'api.example.com' }, ['config.base_url url']],
    ['an unknown format', { pagination: { format: 'pages', config: {} } }, ['config.pagination.format format.unknown']],
    ['a missing format', { pagination: { config: {} } }, ['config.pagination.format format.unknown']],
    [
      'paginations without the key that they need',
      {
        pagination: { format: 'page', config: {} },
        resources: { a: { list: { pagination: { format: 'offset', config: { limit_key: 'n' } } } } },
      },
      [
        'config.pagination.config.page_key pagination.key_missing',
        'config.resources.a.list.pagination.config.offset_key pagination.key_missing',
      ],
    ],
    [
      'a pagination that a template places',
      { pagination: { format: 'page', config: {} }, query: { p: '{{pagination.page}}' } },
      [],
    ],
    [
      'a filter over something computed in lists that end at an empty page',
      {
        pagination: { format: 'page', config: { page_key: 'p' } },
        resources: {
          a: {
            list: { path: '/a', response_path: '$append($.a[b], $.c[d])' },
            search: {
              path: '/a',
              response_path: '$append($.a[b], $.c[d])',
              pagination: { format: 'link_header', config: { stop_on_short: true } },
            },
          },
          told: { list: { path: '/a', response_path: '$.results[active]' } },
          unpaged: { list: { path: '/a', response_path: '$append($.a[b], $.c[d])', pagination: null } },
          linked: {
            list: { path: '/a', response_path: '$append($.a[b], $.c[d])', pagination: { format: 'link_header' } },
          },
          ruled: {
            list: {
              path: '/a',
              response_path: '$append($.a[b], $.c[d])',
              pagination: { format: 'page', config: { page_key: 'p', stop_on_empty: false, has_more_path: 'more' } },
            },
          },
        },
      },
      [
        'config.resources.a.list.response_path pagination.hidden_empty_page',
        'config.resources.a.search.response_path pagination.hidden_empty_page',
      ],
    ],
    ['a wrong type', { pagination: 'page' }, ['config.pagination type']],
    [
      'a paginator without its source',
      { pagination: { format: 'cursor', config: { cursor_key: 'c' } } },
      ['config.pagination.config pagination.cursor_source'],
    ],
    [
      'a paginator that never ends',
      { pagination: { format: 'page', config: { page_key: 'p', stop_on_empty: false } } },
      ['config.pagination.config pagination.endless'],
    ],
    [
      'a required key of a format',
      { authorization: { format: 'basic', config: {} } },
      ['config.authorization.config.username required'],
    ],
    [
      'contradicting keys',
      { authorization: { format: 'header', config: { header_name: 'X' } } },
      ['config.authorization.config authorization.shape'],
    ],
    [
      'an unknown bare placeholder',
      { base_url: 'https://{{subdomain}}.example.com' },
      ['config.base_url placeholder.unknown_root'],
    ],
    [
      'a page size of zero',
      { pagination: { format: 'page', config: { page_key: 'p', max_limit: 0 } } },
      ['config.pagination.config.max_limit min'],
    ],
    [
      'both shapes of credentials at once',
      { credentials: { format: 'api_key', config: {}, oauth2: { config: {} } } },
      ['config.credentials.oauth2 unknown_field', 'config.credentials credentials.mixed_shapes'],
    ],
    [
      'a mistake deep in one of several credentials',
      { credentials: { api_key: { config: { fields: [{ name: 'a', typ: 'text' }] } }, oauth2: { label: 3 } } },
      [
        'config.credentials.api_key.config.fields[0].typ unknown_field',
        'config.credentials.oauth2.label type',
        'config.credentials.oauth2.config required',
      ],
    ],
    ['a name that no path can hold', { resources: { 'a/b': {} } }, ['config.resources.a/b key']],
    [
      'a step of an action',
      { actions: { sync: { steps: [{ type: 'request', config: { path: '/{{', nope: 1 } }, { type: 'dance' }] } } },
      [
        'config.actions.sync.steps[0].config.path placeholder.syntax',
        'config.actions.sync.steps[0].config.nope unknown_field',
        'config.actions.sync.steps[1].type format.unknown',
      ],
    ],
  ])('%s', (_what, config, expected) => {
    expect(lines(config)).toEqual(expected)
  })

  test.each<[string, Json, string[]]>([
    [
      'a response path',
      { path: '/x', response_path: 'a..b' },
      ['config.resources.things.list.response_path response_path'],
    ],
    [
      'a response expression',
      { path: '/x', response_path: '$map(' },
      ['config.resources.things.list.response_path response_path'],
    ],
    [
      'a body template',
      { path: '/x', body: { a: ['{{a b}}'] } },
      ['config.resources.things.list.body placeholder.syntax'],
    ],
    ['a body format', { path: '/x', body_format: 'jsn' }, ['config.resources.things.list.body_format enum']],
    ['an unknown key', { path: '/x', reponse_path: 'a' }, ['config.resources.things.list.reponse_path unknown_field']],
  ])('%s', (_what, method, expected) => {
    expect(ofMethod(method)).toEqual(expected)
  })

  test('a writing method names its HTTP method', () => {
    const resources = { things: { create: { path: '/x' }, delete: { path: '/x', method: 'DELETE' } } }
    expect(lines({ resources })).toEqual(['config.resources.things.create.method required'])
  })
})

describe('bare placeholders are known when something provides them', () => {
  test.each<[string, JsonObject]>([
    ['a credential field', { credentials: { format: 'api_key', config: { fields: [{ name: 'subdomain' }] } } }],
    [
      'a field of one of several credentials',
      { credentials: { oauth2: { config: { fields: [{ name: 'subdomain' }] } }, api_key: {} } },
    ],
    ['the token answer', { credentials: { oauth2: { config: { context_from_token: { subdomain: 'sub' } } } } }],
    ['a form', { actions: { post_connect_user_form: { type: 'form', config: { fields: [{ name: 'subdomain' }] } } } }],
    ['a context update', { actions: { post_install: { type: 'update_context', config: { subdomain: 'x' } } } }],
  ])('%s', (_what, rest) => {
    expect(ofMethod({ path: '/{{subdomain}}' }, rest)).toEqual([])
  })

  test('the specification’s roots always are, and context.<name> too', () => {
    const path =
      '/{{api_key}}/{{oauth.token.access_token}}/{{context.a}}/{{env.B}}/{{args.c}}/{{pagination.page}}/{{id}}'
    expect(ofMethod({ path })).toEqual([])
  })

  test('the finding proposes the field that was meant', () => {
    const credentials = { format: 'api_key', config: { fields: [{ name: 'subdomain' }] } }
    const [finding] = checkConfig({ base_url: 'https://{{subdomian}}.x.example', credentials }, 'integration', 'config')
    expect(finding?.description).toContain('did you mean subdomain?')
  })
})

describe('an override', () => {
  const base = {
    base_url: 'https://api.example.com',
    pagination: { format: 'page', config: { page_key: 'page' } },
    credentials: { oauth2: { config: { client: { id: 'a' } } } },
    resources: { things: { list: { path: '/things' } } },
  }

  test.each<[string, JsonObject]>([
    ['one nested list', { credentials: { oauth2: { config: { optional_scope: ['a'] } } } }],
    ['one key of a format that it does not name', { pagination: { config: { limit_key: 'n' } } }],
    [
      'null anywhere',
      { pagination: null, base_url: null, resources: { things: { list: { headers: { a: null }, path: null } } } },
    ],
    ['a format of its own', { authorization: { format: 'bearer', config: { token: '{{env.T}}' } } }],
    ['what only overrides have', { description: 'd', tags: ['t'], environment_variables: { A: { b: [1] } } }],
    ['nothing', {}],
  ])('may hold %s', (_what, override) => {
    expect(checkConfig(override, 'override', 'override')).toEqual([])
  })

  test.each<[string, JsonObject, string]>([
    [
      'an unknown key',
      { pagination: { config: { limit_kye: 'n' } } },
      'override.pagination.config.limit_kye unknown_field',
    ],
    ['a wrong type', { tags: 'x' }, 'override.tags type'],
    [
      'a key of another format',
      { pagination: { format: 'page', config: { cursor_key: 'c' } } },
      'override.pagination.config.cursor_key unknown_field',
    ],
    ['a text that is no template', { base_url: 'https://{{' }, 'override.base_url placeholder.syntax'],
  ])('may not hold %s', (_what, override, finding) => {
    expect(checkConfig(override, 'override', 'override').map(({ field, rule }) => `${field} ${rule}`)).toContain(
      finding,
    )
  })

  test('may not be a whole other document: an integration does not have its keys', () => {
    expect(lines({ environment_variables: { KEY: 'x' } })).toEqual(['config.environment_variables unknown_field'])
  })

  test.each<[string, JsonObject, string[]]>([
    ['is fine', { pagination: { config: { limit_key: 'n' } } }, []],
    [
      'makes an incomplete format',
      { pagination: { format: 'cursor', config: { page_key: null } } },
      ['override.pagination.config pagination.cursor_source'],
    ],
    ['adds a single credential to a map', { credentials: { format: 'api_key', config: {} } }, []],
    [
      'mixes the shapes of credentials',
      { credentials: { format: 'api_key', config: {}, oauth2: { config: {} } } },
      ['override.credentials credentials.mixed_shapes'],
    ],
    [
      'names an unknown placeholder',
      { resources: { things: { list: { path: '/{{nope}}' } } } },
      ['override.resources.things.list.path placeholder.unknown_root'],
    ],
  ])('together with its definition: %s', (_what, override, expected) => {
    const findings = checkOverride(base, override, 'override').map(({ field, rule }) => `${field} ${rule}`)
    expect(expected.length === 0 ? findings : findings.filter((line) => expected.includes(line))).toEqual(expected)
  })

  test('is not blamed for findings of the definition below', () => {
    expect(checkOverride({ ...base, lable: 'x' }, { description: 'd' }, 'override')).toEqual([])
  })
})
