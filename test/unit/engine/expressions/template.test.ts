import { describe, expect, test } from 'vitest'
import {
  compileJson,
  compileTemplate,
  parentResources,
  renderJson,
  renderUrl,
  renderValue,
  type TemplateScope,
} from '../../../../src/engine/expressions/index.ts'
import { renderText } from '../../../../src/engine/expressions/template.ts'
import { compileUrl, findBaseUrlProblem } from '../../../../src/engine/expressions/url-template.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { type Json, JsonNumber, type JsonObject } from '../../../../src/foundation/json/index.ts'

const scope: TemplateScope = {
  account: {
    context: {
      subdomain: 'acme',
      region: 'eu',
      empty: '',
      nothing: null,
      id: 'context-id',
      site: 'https://my.example.com:8443/base/',
    },
    credentials: { api_key: 'k-1', region: 'from-credentials', oauth: { token: { access_token: 't-1' } } },
    environmentVariables: { PORT: 8080, FLAGS: { beta: true } },
    connection: { webhook_url: 'https://patchbay.example/hook' },
  },
  call: {
    id: 'a/b c?',
    query: { state: 'open', dots: '..', list: [1, 2] },
    body: { title: 'T', nothing: null },
    args: {
      n: '7',
      zero: 0,
      off: false,
      text: 'x',
      json: '{"a":[1]}',
      big: '90071992547409931',
      half: '1.5',
      date: '2026-01-01T00:00:00.500Z',
      list: ['p', 'q'],
    },
    resources: { repositories: { owner: { login: 'octo' } } },
    previousRunDate: '2026-01-02T03:04:05.000Z',
    action: { previous: { id: 7 }, steps: { login: { tenants: ['t-1'] } } },
  },
  pagination: { page: 3 },
}

const value = (text: string): Json | undefined => renderValue(compileTemplate(text), scope)

/** The message of the failure, or the value when there was none. */
function failure(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error instanceof Failure ? `${error.reason} ${error.publicMessage}` : error
  }
}

describe('every root resolves to its value', () => {
  test.each<[string, Json]>([
    ['{{subdomain}}', 'acme'],
    ['{{context.subdomain}}', 'acme'],
    ['{{api_key}}', 'k-1'],
    ['{{credentials.api_key}}', 'k-1'],
    ['{{credentials.subdomain}}', 'acme'],
    ['{{api_key.api_key}}', 'k-1'],
    ['{{api_key.subdomain}}', 'acme'],
    ['{{api_key["subdomain"]}}', 'acme'],
    ['{{api_key.nothing|api_key.subdomain}}', 'acme'],
    ['{{region}}', 'from-credentials'],
    ['{{context.region}}', 'eu'],
    ['{{oauth.token.access_token}}', 't-1'],
    ['{{environment_variables.PORT}}', 8080],
    ['{{env.FLAGS}}', { beta: true }],
    ['{{pagination.page}}', 3],
    ['{{args.list[1]}}', 'q'],
    ['{{args.list.0}}', 'p'],
    ['{{id}}', 'a/b c?'],
    ['{{query.state}}', 'open'],
    ['{{body.title}}', 'T'],
    ['{{body}}', { title: 'T', nothing: null }],
    ['{{resources.repositories.owner.login}}', 'octo'],
    ['{{previous_run_date}}', '2026-01-02T03:04:05.000Z'],
    ['{{connection.webhook_url}}', 'https://patchbay.example/hook'],
    ['{{$previous.id}}', 7],
    ['{{$steps.login.tenants[0]}}', 't-1'],
  ])('%s', (text, expected) => {
    expect(value(text)).toEqual(expected)
  })

  test('a named root never falls through to a context key of the same name', () => {
    expect(renderValue(compileTemplate('{{id}}'), { ...scope, call: {} })).toBeUndefined()
  })

  test('prototype keys are not values', () => {
    expect(value('{{args.constructor}}')).toBeUndefined()
    expect(value('{{constructor}}')).toBeUndefined()
    expect(value('{{args.list.length}}')).toBeUndefined()
  })
})

describe('fallbacks, defaults and casts', () => {
  test.each<[string, Json | undefined]>([
    ['{{missing|args.text}}', 'x'],
    ['{{nothing|args.text}}', 'x'],
    ['{{args.zero|args.text}}', 0],
    ['{{args.off|args.text}}', false],
    ['{{empty|args.text}}', ''],
    ['{{missing?:fallback}}', 'fallback'],
    ['{{nothing?:fallback}}', 'fallback'],
    ['{{args.zero?:1}}', 0],
    ['{{missing?:}}', ''],
    ['{{missing}}', undefined],
    ['{{body.nothing}}', null],
    ['{{args.n:int}}', 7],
    ['{{args.date:epoch}}', 1_767_225_600],
    ['{{args.date:epoch_ms}}', 1_767_225_600_500],
    ['{{missing?:12:int}}', 12],
    ['{{args.n:num}}', 7],
    ['{{args.zero:bool}}', false],
    ['{{missing?:true:bool}}', true],
    ['{{env.PORT:str}}', '8080'],
    ['{{env.FLAGS:str}}', '{"beta":true}'],
    ['{{args.big:int}}', new JsonNumber('90071992547409931')],
    ['{{args.json:json}}', { a: [1] }],
    ['{{env.FLAGS:json}}', { beta: true }],
    ['n={{args.n}}&z={{args.zero}}', 'n=7&z=0'],
    ['{{env.FLAGS}} x', '{"beta":true} x'],
  ])('%s', (text, expected) => {
    expect(value(text)).toEqual(expected)
  })

  test.each([
    ['{{args.text:int}}', '{{args.text:int}} is not a number'],
    ['{{args.text:epoch}}', '{{args.text:epoch}} is not a date'],
    ['{{args.n:epoch}}', '{{args.n:epoch}} is not a date'],
    ['{{args.half:int}}', 'is not an integer'],
    ['{{args.text:bool}}', 'is not a boolean'],
    ['{{args.text:json}}', 'is not JSON'],
    ['Bearer {{missing}}', '{{missing}} has no value'],
    ['Bearer {{nothing}}', '{{nothing}} has no value'],
  ])('%s is rejected and named', (text, message) => {
    expect(failure(() => value(text))).toContain(`PLACEHOLDER_UNRESOLVED`)
    expect(failure(() => value(text))).toContain(message)
  })

  test('where something must stand, one missing placeholder is an error too', () => {
    expect(failure(() => renderText(compileTemplate('{{missing}}'), scope))).toContain('{{missing}} has no value')
  })
})

describe('JSON with placeholders', () => {
  test('entries and items that resolve to nothing are left out, everything else keeps its type', () => {
    const template = compileJson({
      page: '{{pagination.page}}',
      gone: '{{missing}}',
      kept: null,
      nested: { off: '{{args.off}}', gone: '{{missing}}' },
      list: ['{{missing}}', '{{args.n:int}}', 1],
      text: 'page {{pagination.page}}',
    })
    expect(renderJson(template, scope)).toEqual({
      page: 3,
      kept: null,
      nested: { off: false },
      list: [7, 1],
      text: 'page 3',
    })
  })

  test('a subtree without placeholders is the same object on every call', () => {
    const template = compileJson({ fixed: { deep: [1, { x: 'y' }] }, moving: '{{id}}' })
    const first = renderJson(template, scope) as JsonObject
    const second = renderJson(template, scope) as JsonObject
    expect(first.fixed).toBe(second.fixed)
  })
})

describe('URLs', () => {
  const url = (base: string, path: string) => renderUrl(compileUrl(base, path), scope)

  test.each([
    ['https://api.example.com', '/v1/items', 'https://api.example.com/v1/items'],
    ['https://api.example.com/', '/v1/items', 'https://api.example.com/v1/items'],
    ['https://api.example.com/v1', 'items', 'https://api.example.com/v1/items'],
    ['https://api.example.com', '', 'https://api.example.com'],
    ['https://api.example.com', '@evil.example/x', 'https://api.example.com/@evil.example/x'],
    ['https://{{subdomain}}.example.com', '/{{id}}', 'https://acme.example.com/a%2Fb%20c%3F'],
    ['https://{{subdomain}}.example.com:{{env.PORT}}/x', '/y', 'https://acme.example.com:8080/x/y'],
    ['https://{{args.host?:API.Example.com}}', '/y', 'https://api.example.com/y'],
    ['{{context.site}}', '/y', 'https://my.example.com:8443/base/y'],
    ['{{context.site}}/v2', '/y', 'https://my.example.com:8443/base/v2/y'],
    ['{{args.scheme?:http}}://localhost/{{args.n}}', '/y', 'http://localhost/7/y'],
    [
      'https://api.example.com/{{region}}',
      '/{{args.zero}}/{{query.state}}?v={{args.text}}',
      'https://api.example.com/from-credentials/0/open?v=x',
    ],
  ])('%s + %s', (base, path, expected) => {
    expect(url(base, path)).toBe(expected)
  })

  test.each([
    ['a value cannot leave its host label', 'https://{{args.v?:evil.com/x}}.example.com', '/'],
    ['a value cannot add labels beside fixed ones', 'https://{{args.v?:a.b}}.example.com', '/'],
    ['a value cannot carry a user name', 'https://{{args.v?:a@b}}', '/'],
    ['a host is labels only', 'https://{{args.v?:a..b}}', '/'],
    ['a port is a number', 'https://example.com:{{args.v?:80@evil.com}}', '/'],
    ['a scheme is http or https', '{{args.v?:file}}://example.com', '/'],
    ['an origin carries no user name', '{{args.v?:https://u:p@example.com}}', '/'],
    ['an origin carries no query', '{{args.v?:https://example.com?x=1}}', '/'],
    ['an origin is http or https', '{{args.v?:ftp://example.com}}', '/'],
    ['a path value is not ".."', 'https://example.com', '/repos/{{query.dots}}/x'],
    ['a path value is not "." glued to ".."', 'https://example.com', '/repos/.{{args.v?:.}}/x'],
    ['an encoded dot segment is one too', 'https://example.com', '/{{id}}/%2e%2E'],
    ['a path value is not empty', 'https://example.com', '/items/{{empty}}'],
    ['a path value must exist', 'https://example.com', '/items/{{missing}}'],
    ['a path value is well-formed text', 'https://example.com', `/items/{{args.v?:\ud800}}`],
  ])('%s', (_promise, base, path) => {
    expect(failure(() => url(base, path))).toContain('PLACEHOLDER_UNRESOLVED')
  })

  test.each([
    ['https://api.example.com', undefined],
    ['http://{{subdomain}}.example.com/v1', undefined],
    ['{{instance_url}}', undefined],
    ['{{instance_url}}/api', undefined],
    ['{{scheme}}://example.com', undefined],
    ['api.example.com', 'must start with'],
    ['ftp://example.com', 'must start with'],
    ['https:///x', 'must start with'],
    ['{{subdomain}}.example.com', 'only "/" may follow'],
    ['https://example.com?x=1', 'must not hold a query'],
    ['https://example.com#x', 'must not hold a query'],
    ['https://user:pass@example.com', 'must not hold a user name'],
  ])('base address %s is judged when it is written', (text, problem) => {
    if (problem === undefined) expect(findBaseUrlProblem(text)).toBeUndefined()
    else expect(findBaseUrlProblem(text)).toContain(problem)
  })
})

test('parent records nest under their path and keep the grandparents', () => {
  const first = parentResources('crm/contacts', { id: 1 })
  expect(first).toEqual({ crm: { contacts: { id: 1 } } })
  expect(parentResources('crm/notes', { id: 2 }, first)).toEqual({ crm: { contacts: { id: 1 }, notes: { id: 2 } } })
})
