import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { PAGINATION_FORMATS } from '../../src/engine/formats/pagination/registry.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { firstTenant } from '../support/seeded-tenant.ts'
import { type ScriptedExchange, startUpstream } from '../support/upstream.ts'
import { connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

/** A list of three records over two pages or more, as each format asks for it. */
interface Row {
  readonly config: JsonObject
  readonly exchanges: readonly ScriptedExchange[]
  readonly stopReason: string
  readonly records?: readonly Json[]
}

const page = (request: string, data: readonly Json[], more: JsonObject = {}): ScriptedExchange => ({
  request,
  answer: { json: { data, ...more } },
})
const part = (range: string, data: readonly Json[]): ScriptedExchange => ({
  request: 'GET /page',
  headers: { range },
  answer: { status: 206, json: { data }, headers: { 'content-range': `${range.replace('=', ' ')}/3` } },
})

const ROWS: Readonly<Record<string, Row>> = {
  page: {
    config: { page_key: 'p', start_page: 0, stop_expression: 'page + 1 >= body.pages' },
    exchanges: [page('GET /page?p=0', [1, 2], { pages: 2 }), page('GET /page?p=1', [3], { pages: 2 })],
    stopReason: 'expression',
  },
  offset: {
    config: { offset_key: 'skip', limit_key: 'top', limit: 2 },
    exchanges: [
      page('GET /page?skip=0&top=2', [1, 2]),
      page('GET /page?skip=2&top=2', [3]),
      page('GET /page?skip=3&top=2', []),
    ],
    stopReason: 'empty_page',
  },
  cursor: {
    config: { cursor_path: '@odata.nextLink', is_link: true },
    exchanges: [page('GET /page', [1, 2], { '@odata.nextLink': '/page?at=2' }), page('GET /page?at=2', [3])],
    stopReason: 'no_cursor',
  },
  link_header: {
    config: {},
    exchanges: [
      { request: 'GET /page', answer: { json: { data: [1, 2] }, headers: { link: '</page?at=2>; rel="next"' } } },
      page('GET /page?at=2', [3]),
    ],
    stopReason: 'link_absent',
  },
  range: {
    config: { limit: 2 },
    exchanges: [
      part('items=0-1', [1, 2]),
      {
        ...part('items=2-3', [3]),
        answer: { status: 206, json: { data: [3] }, headers: { 'content-range': 'items 2-2/3' } },
      },
    ],
    stopReason: 'range_end',
  },
  dynamic: {
    config: {
      get_initial_pagination_values_expression: '{"query": {"seen": 0}}',
      get_pagination_values_expression: 'count = 0 ? null : {"query": {"seen": total_seen}}',
    },
    exchanges: [page('GET /page?seen=0', [1, 2]), page('GET /page?seen=2', [3]), page('GET /page?seen=3', [])],
    stopReason: 'no_cursor',
  },
  window: {
    config: { from_key: 'a', to_key: 'b', step: 'P1D', start: '2026-01-01', end: '2026-01-03', value_format: 'date' },
    exchanges: [page('GET /page?a=2026-01-01&b=2026-01-02', [1, 2]), page('GET /page?a=2026-01-02&b=2026-01-03', [3])],
    stopReason: 'window_end',
  },
}

describe.each(PAGINATION_FORMATS.map(({ format }) => format))('a list paged by %s', (format) => {
  it('is read over REST page by page, and told why it ends', async () => {
    const row = ROWS[format]
    if (row === undefined) throw new Error(`no row for ${format}`)
    const list = { path: '/page', response_path: 'data', pagination: { format, config: row.config } }
    const credentials = { api_key: { config: { fields: [{ name: 'api_key', type: 'password' }] } } }
    const definition = { base_url: upstream.url, credentials, resources: { things: { list } } }
    const { accountId } = await connectAccount(app, tenant, definition)
    upstream.script(...row.exchanges)
    const records: Json[] = []
    let cursor = ''
    let stopReason: string | undefined
    for (let pages = 0; stopReason === undefined && pages < 10; pages += 1) {
      const url = `${app.url}/proxy/things?integrated_account_id=${accountId}${cursor}`
      const response = await fetch(url, { headers: { authorization: `Bearer ${tenant.environmentToken}` } })
      const answer = (await response.json()) as { result: Json[]; next_cursor?: string; stop_reason?: string }
      expect([response.status, answer]).toEqual([200, expect.objectContaining({ result: expect.any(Array) })])
      records.push(...answer.result)
      cursor = `&next_cursor=${answer.next_cursor}`
      stopReason = answer.stop_reason
    }
    expect([records, stopReason]).toEqual([[1, 2, 3], row.stopReason])
  })
})
