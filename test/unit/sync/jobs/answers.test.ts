import { afterAll, expect, test } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { type SyncOverHttp, startSyncOverHttp } from '../../../support/sync-over-http.ts'

let asked: string[] = []
let answer: Parameters<typeof startSyncOverHttp>[0]
const upstream: SyncOverHttp = await startSyncOverHttp((request, response, url) => {
  asked.push(`${request.method} ${decodeURIComponent(url.pathname + url.search)}`)
  answer(request, response, url)
})
afterAll(() => upstream[Symbol.asyncDispose]())

const CURSOR = { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'cursor' } }
const JSON_TYPE = { 'content-type': 'application/json' }

async function run(pagination: JsonObject, more: JsonObject, answers: typeof answer) {
  asked = []
  answer = answers
  const clock = fastClock()
  const definition = { pagination, ...more, resources: { items: { list: { path: '/items', response_path: 'items' } } } }
  return await upstream.run(definition, clock, (ms) => clock.advance(ms))
}

test('a page that was lost is asked for again, and the run is never complete without it', async () => {
  let lost = 0
  const result = await run(CURSOR, {}, (_request, response, url) => {
    const cursor = url.searchParams.get('cursor')
    if (cursor === 'b' && lost++ < 8) return void response.writeHead(200, JSON_TYPE).end()
    const next = { null: 'b', b: 'c' }[String(cursor)]
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ items: [{ id: cursor ?? 'a' }], next }))
  })
  expect(result).toMatchObject({ kind: 'completed', records: 3, isComplete: true })
})

test('a job of the third party is waited for as long as it asks', async () => {
  const start = fastClock().now().getTime()
  let seen = 0
  const result = await run(CURSOR, {}, (_request, response) => {
    if (seen++ < 2)
      return void response.writeHead(202, { ...JSON_TYPE, 'retry-after': '120' }).end('{"status":"running"}')
    response.writeHead(200, JSON_TYPE).end('{"items":[{"id":1}]}')
  })
  expect(result).toMatchObject({ kind: 'completed', records: 1, attempts: 3 })
  expect(start).toBeGreaterThan(0)
  expect(asked).toHaveLength(3)
})

test('a job of the third party that never ends is an error', async () => {
  const result = await run(CURSOR, {}, (_request, response) => void response.writeHead(202, JSON_TYPE).end('{}'))
  expect(result).toMatchObject({ kind: 'failed', reason: 'UPSTREAM_ERROR', isComplete: false })
  expect(asked.length).toBeLessThanOrEqual(30)
})

test('a next link in raw UTF-8 is followed as it is', async () => {
  const result = await run({ format: 'link_header', config: {} }, {}, (_request, response, url) => {
    const isFirst = url.searchParams.get('page') !== '2'
    const link = Buffer.from('</items?q=größe&page=2>; rel="next"').toString('latin1')
    response.writeHead(200, isFirst ? { ...JSON_TYPE, link } : JSON_TYPE).end(`{"items":[{"id":${isFirst ? 1 : 2}}]}`)
  })
  expect(asked).toEqual(['GET /items', 'GET /items?q=größe&page=2'])
  expect(result).toMatchObject({ kind: 'completed', records: 2 })
})

const RESTART = {
  error_expression:
    'status = 400 and body.code = "INVALID_CURSOR" ? {"action": "restart"} : status >= 400 ? {"status": status}',
}

test('a list whose cursor has expired begins again, once, and the run says so', async () => {
  let expired = 0
  const result = await run(CURSOR, RESTART, (_request, response, url) => {
    const isSecond = url.searchParams.has('cursor')
    if (isSecond && expired++ === 0) return void response.writeHead(400, JSON_TYPE).end('{"code":"INVALID_CURSOR"}')
    response
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ items: [{ id: isSecond ? 2 : 1 }], next: isSecond ? null : 'b' }))
  })
  expect(asked).toEqual(['GET /items', 'GET /items?cursor=b', 'GET /items', 'GET /items?cursor=b'])
  expect(result).toMatchObject({ kind: 'completed', isComplete: true, warnings: ['LISTING_RESTARTED'] })
})

test('a list whose cursor expires each time is an error after the second one', async () => {
  const result = await run(CURSOR, RESTART, (_request, response, url) => {
    if (url.searchParams.has('cursor')) return void response.writeHead(400, JSON_TYPE).end('{"code":"INVALID_CURSOR"}')
    response.writeHead(200, JSON_TYPE).end('{"items":[{"id":1}],"next":"b"}')
  })
  expect(asked).toHaveLength(4)
  expect(result).toMatchObject({ kind: 'partially_completed', isComplete: false, warnings: ['LISTING_RESTARTED'] })
})
