import { describe, expect, test } from 'vitest'
import type { PageStep, ProxyRequest } from '../../../../src/engine/proxy/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startUpstream } from '../../../support/upstream.ts'
import { collect, failureOf, on, startEngine } from './engine.ts'

const engine = await startEngine()

const PAGED = {
  pagination: { format: 'page', config: { page_key: 'page', limit_key: 'size', limit: 2, max_limit: 100 } },
  resources: {
    items: { list: { path: '/items', response_path: 'data' }, get: { path: '/items/{{id}}' }, search: { path: '/s' } },
  },
}
const LIST = on('items', 'list')

const recordsOf = (steps: readonly PageStep[]) => steps.flatMap((step) => (step.kind === 'page' ? [step.records] : []))

describe('a list is walked page by page', () => {
  test('to its end, which is named', async () => {
    engine.upstream.script(
      { request: 'GET /items?page=1&size=2', answer: { json: { data: [1, 2] } } },
      { request: 'GET /items?page=2&size=2', answer: { json: { data: [3] } } },
      { request: 'GET /items?page=3&size=2', answer: { json: { data: [] } } },
    )
    const steps = await collect(engine.pages(PAGED, LIST))
    expect(recordsOf(steps)).toEqual([[1, 2], [3], []])
    expect(steps.map((step) => step.page)).toEqual([1, 2, 3])
    expect(steps.at(-1)).toMatchObject({ kind: 'page', state: null, stopReason: 'empty_page' })
    expect(steps[0]).toMatchObject({ stopReason: undefined })
  })

  test('fetching nothing before the next step is taken', async () => {
    engine.upstream.script({ request: 'GET /items?page=1&size=2', answer: { json: { data: [1] } } })
    const steps = await collect(engine.pages(PAGED, LIST), 1)
    expect(steps).toHaveLength(1)
    expect(engine.upstream.requests).toHaveLength(1)
  })

  test('and resumes in another process from the state of any page', async () => {
    engine.upstream.script(
      { request: 'GET /items?page=1&size=7', answer: { json: { data: [1] } } },
      { request: 'GET /items?page=2&size=7', answer: { json: { data: [2] } } },
      { request: 'GET /items?page=3&size=7', answer: { json: { data: [] } } },
    )
    const [first] = await collect(engine.pages(PAGED, { ...LIST, page: { limit: 7 } }), 1)
    const stored = JSON.parse(JSON.stringify(first?.state)) as JsonObject
    const rest = await collect(engine.pages(PAGED, LIST, stored))
    expect(recordsOf(rest)).toEqual([[2], []])
    expect(rest.map((step) => step.page)).toEqual([2, 3])
  })

  test('and each page has the reported total', async () => {
    const { config } = PAGED.pagination
    const claiming = { ...PAGED, pagination: { format: 'page', config: { ...config, total_path: 'total' } } }
    engine.upstream.script(
      { request: 'GET /items?page=1&size=2', answer: { json: { data: [1], total: 3 } } },
      { request: 'GET /items?page=2&size=2', answer: { json: { data: [] } } },
    )
    const steps = await collect(engine.pages(claiming, LIST))
    expect(steps.map((step) => (step.kind === 'page' ? step.total : step.kind))).toEqual([3, undefined])
  })

  test('a state of another pagination is rejected', async () => {
    const cursored = { ...PAGED, pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'c' } } }
    engine.upstream.script({ request: 'GET /items?page=1&size=2', answer: { json: { data: [1] } } })
    const [first] = await collect(engine.pages(PAGED, LIST), 1)
    expect(await failureOf(collect(engine.pages(cursored, LIST, first?.state)))).toContain('PAGE_TOKEN_INVALID')
  })
})

describe('a rate limit is a step', () => {
  test('after which the same page is asked for again', async () => {
    engine.upstream.script(
      { request: 'GET /items?page=1&size=2', answer: { json: { data: [1] } } },
      { request: 'GET /items?page=2&size=2', answer: { status: 429, headers: { 'retry-after': '3' } }, times: 2 },
      { request: 'GET /items?page=2&size=2', answer: { json: { data: [] } } },
    )
    const steps = await collect(engine.pages(PAGED, LIST))
    expect(steps.map(({ kind, page }) => [kind, page])).toEqual([
      ['page', 1],
      ['rate_limited', 2],
      ['rate_limited', 2],
      ['page', 2],
    ])
    expect(steps[1]).toMatchObject({ retryAfterSeconds: 3 })
  })

  test('whose state resumes at the page that was not served', async () => {
    engine.upstream.script(
      { request: 'GET /items?page=1&size=2', answer: { status: 429 } },
      { request: 'GET /items?page=1&size=2', answer: { json: { data: [] } } },
    )
    const [limited] = await collect(engine.pages(PAGED, LIST), 1)
    expect(limited).toMatchObject({ kind: 'rate_limited', state: { pages: 0 } })
    expect(recordsOf(await collect(engine.pages(PAGED, LIST, limited?.state)))).toEqual([[]])
  })

  test('also in a list that is not paged', async () => {
    const config = { resources: { items: { list: { path: '/items' } } } }
    engine.upstream.script(
      { request: 'GET /items', answer: { status: 429 } },
      { request: 'GET /items', answer: { json: [{ id: 1 }] } },
    )
    const steps = await collect(engine.pages(config, LIST))
    expect(steps.map(({ kind }) => kind)).toEqual(['rate_limited', 'page'])
    expect(steps[1]).toMatchObject({ records: [{ id: 1 }], state: null, stopReason: 'unpaginated' })
  })
})

describe('an error ends the walk', () => {
  test('with a state to try the page again', async () => {
    engine.upstream.script(
      { request: 'GET /items?page=1&size=2', answer: { json: { data: [1] } } },
      { request: 'GET /items?page=2&size=2', answer: { status: 403, json: { message: 'no' } } },
      { request: 'GET /items?page=2&size=2', answer: { json: { data: [] } } },
    )
    const steps = await collect(engine.pages(PAGED, LIST))
    expect(steps).toHaveLength(2)
    expect(steps[1]).toMatchObject({ kind: 'upstream_error', page: 2, status: 403, message: 'no' })
    expect(recordsOf(await collect(engine.pages(PAGED, LIST, steps[1]?.state)))).toEqual([[]])
  })

  test.each([
    ['ignore', 'error_ignored'],
    ['stop', 'error_stopped'],
  ])('cleanly when the definition says %s', async (action, stopReason) => {
    const config = { ...PAGED, error_expression: `status = 404 ? {"status": 404, "action": "${action}"}` }
    engine.upstream.script({ request: 'GET /items?page=1&size=2', answer: { status: 404 } })
    expect(await collect(engine.pages(config, LIST))).toMatchObject([
      { kind: 'page', records: [], state: null, stopReason },
    ])
  })
})

describe('which methods are paged', () => {
  test('a method that is not a list is a list of its one result', async () => {
    engine.upstream.script({ request: 'GET /items/7', answer: { json: { id: 7 } } })
    const steps = await collect(engine.pages(PAGED, { ...on('items', 'get'), id: 7 }))
    expect(steps).toMatchObject([
      { kind: 'page', page: 1, records: [{ id: 7 }], state: null, stopReason: 'unpaginated' },
    ])
  })

  test('pagination: null on a method turns paging off', async () => {
    const config = { ...PAGED, resources: { items: { list: { path: '/items', pagination: null } } } }
    engine.upstream.script({ request: 'GET /items', answer: { json: [1] } })
    expect(await collect(engine.pages(config, LIST))).toMatchObject([{ records: [1], stopReason: 'unpaginated' }])
  })

  test('a method of any name with a pagination of its own is a list', async () => {
    const search = {
      method: 'POST',
      path: '/s',
      pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'c', in: 'body' } },
    }
    const config = { resources: { items: { search: { ...search, response_path: 'hits' } } } }
    engine.upstream.script(
      { request: 'POST /s', body: { q: 'x' }, answer: { json: { hits: [1], next: 'n' } } },
      { request: 'POST /s', body: { q: 'x', c: 'n' }, answer: { json: { hits: [2] } } },
    )
    expect(recordsOf(await collect(engine.pages(config, { ...on('items', 'search'), body: { q: 'x' } })))).toEqual([
      [1],
      [2],
    ])
  })

  test('the definition may place the values itself', async () => {
    const list = {
      method: 'POST',
      path: '/graphql',
      body: {
        query: '{ items(after: $after) }',
        variables: { after: '{{pagination.cursor}}', first: '{{pagination.limit}}' },
      },
      response_path: 'nodes',
      pagination: { format: 'cursor', config: { cursor_path: 'end', limit: 5 } },
    }
    const query = '{ items(after: $after) }'
    engine.upstream.script(
      {
        request: 'POST /graphql',
        body: { query, variables: { first: 5 } },
        answer: { json: { nodes: [1], end: 'e' } },
      },
      {
        request: 'POST /graphql',
        body: { query, variables: { first: 5, after: 'e' } },
        answer: { json: { nodes: [2], end: null } },
      },
    )
    expect(recordsOf(await collect(engine.pages({ resources: { items: { list } } }, LIST)))).toEqual([[1], [2]])
  })
})

describe('next links', () => {
  const linked = {
    authorization: { format: 'query', config: { params: { key: '{{api_key}}' } } },
    pagination: { format: 'link_header', config: { limit_key: 'per_page', limit: 2 } },
    resources: { items: { list: { path: '/items', query: { sort: 'id' } } } },
  }
  const account = { credentials: { api_key: 'secret' } }

  test('are followed as given on paths that the definition allows, with the credential put on again', async () => {
    const pagination = { format: 'link_header', config: { ...linked.pagination.config, allowed_paths: ['/moved/*'] } }
    engine.upstream.script(
      {
        request: 'GET /items?sort=id&per_page=2&key=secret',
        answer: { json: [1], headers: { link: `<${engine.upstream.url}/moved/7?page=2&key=old>; rel="next"` } },
      },
      { request: 'GET /moved/7?page=2&key=secret', answer: { json: [2] } },
    )
    const steps = await collect(engine.pages({ ...linked, pagination }, LIST, null, account))
    expect(recordsOf(steps)).toEqual([[1], [2]])
    expect(steps[1]).toMatchObject({ stopReason: 'link_absent' })
    expect(JSON.stringify(steps[0]?.state)).not.toContain('secret')
  })

  test('to another origin are rejected and no credential is sent', async () => {
    await using elsewhere = await startUpstream()
    engine.upstream.script({
      request: 'GET /items?sort=id&per_page=2&key=secret',
      answer: { json: [1], headers: { link: `<${elsewhere.url}/items>; rel="next"` } },
    })
    const steps = engine.pages(linked, LIST, null, account)
    expect((await steps.next()).value).toMatchObject({ kind: 'page', records: [1] })
    expect(await failureOf(steps.next())).toContain('PAGINATION_ORIGIN')
    expect(elsewhere.requests).toEqual([])
  })

  test('to another path of the origin are rejected', async () => {
    engine.upstream.script({
      request: 'GET /items?sort=id&per_page=2&key=secret',
      answer: { json: [1], headers: { link: '</payroll?page=2>; rel="next"' } },
    })
    const steps = engine.pages(linked, LIST, null, account)
    expect((await steps.next()).value).toMatchObject({ kind: 'page', records: [1] })
    expect(await failureOf(steps.next())).toContain('PAGINATION_ORIGIN')
  })

  test('in a cursor cannot be forged', async () => {
    engine.upstream.script({
      request: 'GET /items?sort=id&per_page=2&key=secret',
      answer: { json: [1], headers: { link: '</items?page=2>; rel="next"' } },
    })
    const outcome = await engine.call(linked, LIST, account)
    const cursor = outcome.kind === 'ok' ? (outcome.page?.nextCursor ?? '') : ''
    const forged = Buffer.from(cursor, 'base64url')
    forged.writeUInt8(forged.readUInt8(forged.length - 1) ^ 1, forged.length - 1)
    for (const each of [forged.toString('base64url'), Buffer.from('{"url":"/steal"}').toString('base64url')])
      expect(await failureOf(engine.call(linked, { ...LIST, page: { cursor: each } }, account))).toContain(
        'PAGE_TOKEN_INVALID',
      )
  })
})

describe('a caller pages by cursor with every pagination format', () => {
  test('one page at a time, keeping the size of the first', async () => {
    engine.upstream.script(
      { request: 'GET /items?page=1&size=100', answer: { json: { data: [1] } } },
      { request: 'GET /items?page=2&size=100', answer: { json: { data: [] } } },
    )
    const first = await engine.call(PAGED, { ...LIST, page: { limit: 500 } })
    expect(first).toMatchObject({
      kind: 'ok',
      result: [1],
      page: { nextCursor: expect.any(String), stopReason: undefined },
    })
    const cursor = first.kind === 'ok' ? (first.page?.nextCursor ?? '') : ''
    const second = await engine.call(PAGED, { ...LIST, page: { cursor } })
    expect(second).toMatchObject({ result: [], page: { nextCursor: null, stopReason: 'empty_page' } })
  })

  test.each<[unknown, number]>([
    ['5', 5],
    [500, 100],
    ['many', 2],
    [0, 2],
  ])('a page size under the name of the API counts as one: %s', async (size, sent) => {
    engine.upstream.script({ request: `GET /items?size=${sent}&page=1`, answer: { json: { data: [] } } })
    const query = { size } as JsonObject
    expect(recordsOf(await collect(engine.pages(PAGED, { ...LIST, query })))).toEqual([[]])
  })

  test.each<[string, Partial<ProxyRequest>]>([
    ['with another parameter', { query: { tier: 'bronze' } }],
    ['without the parameter', {}],
    ['with other arguments', { query: { tier: 'gold' }, args: { a: 1 } }],
    ['of another resource', { ...on('others', 'list'), query: { tier: 'gold' } }],
  ])('a cursor is not taken by a list %s', async (_what, other) => {
    const plan = {
      ...PAGED,
      resources: { ...PAGED.resources, others: { list: { path: '/others', response_path: 'data' } } },
    }
    engine.upstream.script({ request: 'GET /items?tier=gold&page=1&size=2', answer: { json: { data: [1, 2] } } })
    const first = await engine.call(plan, { ...LIST, query: { tier: 'gold' } })
    const cursor = first.kind === 'ok' ? (first.page?.nextCursor ?? '') : ''
    expect(await failureOf(engine.call(plan, { ...LIST, ...other, page: { cursor } }))).toContain('PAGE_TOKEN_INVALID')
  })

  test.each(['', 'nonsense', Buffer.from('[]').toString('base64url'), 'x'.repeat(20_000)])(
    'a wrong cursor is refused',
    async (cursor) => {
      const page: ProxyRequest['page'] = { cursor }
      expect(await failureOf(engine.call(PAGED, { ...LIST, page }))).toContain('PAGE_TOKEN_INVALID')
    },
  )
})

test('416 is the end of ranges, not an error', async () => {
  const config = { ...PAGED, pagination: { format: 'range', config: { limit: 2 } } }
  engine.upstream.script(
    {
      request: 'GET /items',
      headers: { range: 'items=0-1' },
      answer: { status: 206, json: { data: [1, 2] }, headers: { 'content-range': 'items 0-1/*' } },
    },
    { request: 'GET /items', headers: { range: 'items=2-3' }, answer: { status: 416 } },
  )
  const steps = await collect(engine.pages(config, LIST))
  expect(steps.at(-1)).toMatchObject({ records: [], state: null, stopReason: 'range_end' })
})

test('a loop is an error that names the page', async () => {
  engine.upstream.script(
    { request: 'GET /items?page=1&size=2', answer: { json: { data: [1] } } },
    { request: 'GET /items?page=2&size=2', answer: { json: { data: [1] } } },
  )
  expect(await failureOf(collect(engine.pages(PAGED, LIST)))).toContain(
    'PAGINATION_LOOP: the listing makes no progress: page 2',
  )
})

describe('a page of which response_path filters every record does not end the list', () => {
  const filtered = (pagination: JsonObject, response_path = '$.data[active]') => ({
    pagination,
    resources: { items: { list: { path: '/items', response_path } } },
  })
  const entries = (...ids: readonly number[]) => ids.map((id) => ({ id, active: id % 2 === 0 }))
  const numbered = { format: 'page', config: { page_key: 'page', limit: 2, stop_on_short: true } }

  test.each([
    '$.data[active]',
    '$filter($.data, function($d) { $d.active })',
    '$.data[active].{"id": id, "active": active}',
  ])('%s', async (path) => {
    engine.upstream.script(
      { request: 'GET /items?page=1', answer: { json: { data: entries(1, 3) } } },
      { request: 'GET /items?page=2', answer: { json: { data: entries(2, 5) } } },
      { request: 'GET /items?page=3', answer: { json: { data: entries(7) } } },
    )
    const steps = await collect(engine.pages(filtered(numbered, path), LIST))
    expect(recordsOf(steps)).toEqual([[], entries(2), []])
    expect(steps.at(-1)).toMatchObject({ stopReason: 'short_page' })
  })

  test('and an offset counts what came', async () => {
    engine.upstream.script(
      { request: 'GET /items?skip=0', answer: { json: { data: entries(1, 2, 3) } } },
      { request: 'GET /items?skip=3', answer: { json: { data: [] } } },
    )
    const steps = await collect(engine.pages(filtered({ format: 'offset', config: { offset_key: 'skip' } }), LIST))
    expect(recordsOf(steps)).toEqual([entries(2), []])
  })
})

describe('a text where records are expected is an error of the upstream', () => {
  const login = '<!DOCTYPE html><html><body>Sign in</body></html>'
  const html = { 'content-type': 'text/html; charset=utf-8' }
  const one = (method: JsonObject, name = 'list') => ({
    retry: { max_attempts: 1 },
    resources: { items: { [name]: { path: '/items', ...method } } },
  })

  test.each<[string, JsonObject, JsonObject, string]>([
    ['a login page', {}, { text: login, headers: html }, '200 with text (text/html)'],
    [
      'a login page below a path',
      { response_path: 'data' },
      { text: login, headers: html },
      '200 with text (text/html)',
    ],
    [
      'a login page below an expression',
      { response_path: '$.data' },
      { text: login, headers: html },
      '200 with text (text/html)',
    ],
    [
      'a login page where CSV is expected',
      { response_format: 'csv' },
      { text: login, headers: html },
      'does not parse',
    ],
    [
      'a login page where XML is expected',
      { response_format: 'xml', response_path: 'a.b' },
      { text: login, headers: html },
      'does not parse',
    ],
    ['a bare number', {}, { json: 7 }, '200 with the value 7 (application/json)'],
    [
      'a bare number that is no double',
      {},
      { text: '12345678901234567890', headers: { 'content-type': 'application/json' } },
      '200 with the value 12345678901234567890 (application/json)',
    ],
    ['a bare text', {}, { json: 'maintenance' }, '200 with text (application/json)'],
    [
      'a text under the path',
      { response_path: 'data' },
      { json: { data: 'none' } },
      '200 with text (application/json)',
    ],
  ])('%s', async (_what, method, answer, message) => {
    engine.upstream.script({ request: 'GET /items', answer: answer as never, times: 2 })
    const rejection = await failureOf(collect(engine.pages(one(method), LIST)))
    expect(rejection).toMatch(/^UPSTREAM_INVALID_RESPONSE/)
    expect(rejection).toContain(message)
    expect(await failureOf(engine.call(one(method), LIST))).toBe(rejection)
  })

  test('also of a method that is not a list, when a run reads it', async () => {
    engine.upstream.script({ request: 'GET /items', answer: { text: login, headers: html } })
    const steps = collect(engine.pages(one({}, 'get'), on('items', 'get')))
    expect(await failureOf(steps)).toContain('UPSTREAM_INVALID_RESPONSE')
  })

  test('unless the method says that its answers are text', async () => {
    engine.upstream.script({
      request: 'GET /items',
      answer: { text: 'one line', headers: { 'content-type': 'text/plain' } },
    })
    expect(recordsOf(await collect(engine.pages(one({ response_format: 'text' }), LIST)))).toEqual([['one line']])
  })

  test('and an error expression may say what such a page means', async () => {
    const config = {
      ...one({}),
      error_expression:
        '$contains(headers."content-type", "html") ? {"status": 401, "message": "signed out", "action": "fail"}',
    }
    engine.upstream.script({ request: 'GET /items', answer: { text: login, headers: html } })
    expect(await collect(engine.pages(config, LIST))).toMatchObject([
      { kind: 'upstream_error', status: 401, message: 'signed out' },
    ])
  })

  test('an answer without a body, and a list that is left out, are empty lists', async () => {
    engine.upstream.script(
      { request: 'GET /items', answer: { status: 204 } },
      { request: 'GET /items', answer: { json: {} } },
    )
    expect(recordsOf(await collect(engine.pages(one({ response_path: 'data' }), LIST)))).toEqual([[]])
    expect(recordsOf(await collect(engine.pages(one({ response_path: 'data' }), LIST)))).toEqual([[]])
  })
})
