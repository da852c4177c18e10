import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { on, startEngine } from './engine.ts'

const engine = await startEngine()
const config = (method: JsonObject, more: JsonObject = {}): JsonObject => ({
  base_url: engine.upstream.url,
  resources: { items: { get: method, list: method, update: method } },
  ...more,
})

test.each(['PROPFIND', 'REPORT', 'SEARCH', 'MKCOL', 'MOVE', 'LOCK', 'mkcalendar'])(
  '%s is sent with its body',
  async (verb) => {
    const method = { method: verb, path: '/dav', body_format: 'xml', body: { propfind: { prop: 'etag' } } }
    engine.upstream.script({ request: `${verb.toUpperCase()} /dav`, answer: { status: 207, json: { ok: 1 } } })
    expect(await engine.call(config(method), on('items', 'update'))).toMatchObject({ kind: 'ok', result: { ok: 1 } })
    expect(engine.upstream.requests[0]?.body).toContain('<propfind>')
  },
)

test('a reading WebDAV method is sent again after a 503, and LOCK is not', async () => {
  const retry = { max_attempts: 2 }
  engine.upstream.script({ request: 'PROPFIND /dav', answer: { status: 503 }, times: 2 })
  await engine.call(config({ method: 'PROPFIND', path: '/dav' }, { retry }), on('items', 'update'))
  engine.upstream.script({ request: 'LOCK /dav', answer: { status: 503 } })
  expect(await engine.call(config({ method: 'LOCK', path: '/dav' }, { retry }), on('items', 'update'))).toMatchObject({
    kind: 'upstream_error',
  })
})

describe('a signature over the query', () => {
  test('is added last, over the parameters as they are sent', async () => {
    const expression =
      '($all := request.query & "&timestamp=" & $millis(); {"timestamp": $millis(), "signature": $hmac($all, credentials.secret)})'
    const authorization = { format: 'query', config: { expression } }
    const method = { path: '/order', query: { symbol: 'BTC/USDT', recvWindow: '5000' } }
    const query = 'symbol=BTC%2FUSDT&recvWindow=5000'
    await engine
      .call(config(method, { authorization }), on('items', 'get'), { credentials: { secret: 's' } })
      .catch(() => {})
    const [sent] = engine.upstream.requests
    const [, signed = '', signature] = /^\/order\?(.*)&signature=([0-9a-f]{64})$/.exec(sent?.url ?? '') ?? []
    expect(signed).toMatch(new RegExp(`^${query.replace(/[.*+?^$()|[\]\\]/g, '\\$&')}&timestamp=\\d+$`))
    expect(signature).toBe(createHmac('sha256', 's').update(signed).digest('hex'))
    expect(() => engine.upstream.verify()).toThrow('unexpected')
  })
})

describe('HTTP Digest', () => {
  const authorization = { format: 'digest', config: { username: 'u', password: '{{password}}' } }
  const account = { credentials: { password: 'p' } }
  const challenge = (nonce: string) => ({
    status: 401,
    headers: { 'www-authenticate': `Digest realm="r", nonce="${nonce}", qop="auth", algorithm=SHA-256` },
  })
  const fieldsOf = (header = '') =>
    Object.fromEntries([...header.matchAll(/(\w+)="?([^",]*)"?/g)].map(([, k, v]) => [k, v]))

  test('answers the challenge once, and later pages at once, counted', async () => {
    const pagination = { format: 'page', config: { page_key: 'page' } }
    engine.upstream.script(
      { request: 'GET /items?page=1', headers: { authorization: null }, answer: challenge('n1') },
      { request: 'GET /items?page=1', answer: { json: [{ id: 1 }] } },
      { request: 'GET /items?page=2', answer: challenge('n2') },
      { request: 'GET /items?page=2', answer: { json: [] } },
    )
    const steps = engine.pages(
      config({ path: '/items' }, { authorization, pagination }),
      on('items', 'list'),
      null,
      account,
    )
    const kinds: string[] = []
    for await (const { kind } of steps) kinds.push(kind)
    expect(kinds).toEqual(['page', 'page'])
    const sent = engine.upstream.requests.map(({ headers }) => fieldsOf(headers.authorization))
    expect(sent.map(({ nonce, nc }) => [nonce, nc])).toEqual([
      [undefined, undefined],
      ['n1', '00000001'],
      ['n1', '00000002'],
      ['n2', '00000001'],
    ])
  })

  test('is rejected with a wrong password after one answer', async () => {
    engine.upstream.script(
      { request: 'POST /items', answer: challenge('n') },
      { request: 'POST /items', answer: challenge('n') },
    )
    const call = engine.call(
      config({ method: 'POST', path: '/items' }, { authorization }),
      { ...on('items', 'update'), body: { a: 1 } },
      account,
    )
    expect(await call).toMatchObject({ kind: 'upstream_error', status: 401 })
    expect(engine.upstream.requests.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}'])
  })

  test('downloads by the streaming call', async () => {
    engine.upstream.script(
      { request: 'GET /items', answer: challenge('n') },
      { request: 'GET /items', answer: { text: 'file' } },
    )
    const outcome = await engine.stream(config({ path: '/items' }, { authorization }), on('items', 'get'), account)
    expect(outcome).toMatchObject({ kind: 'stream', status: 200 })
    if (outcome.kind === 'stream') outcome.body.destroy()
  })
})

describe('a name with slashes', () => {
  const method = { path: '/v1/{{id:path}}/reviews' }

  test('stays a path, with its parts encoded', async () => {
    engine.upstream.script({ request: 'GET /v1/accounts/1/locations/a%20b/reviews', answer: { json: {} } })
    const target = { ...on('items', 'get'), id: 'accounts/1/locations/a b' }
    expect(await engine.call(config(method), target)).toMatchObject({ kind: 'ok' })
  })

  test.each(['', '/', 'a//b', 'a/', '../x', 'a/../../b', 'a/%2e%2e/b', '\ud800'])('%j is none', async (id) => {
    const call = engine.call(config(method), { ...on('items', 'get'), id })
    await expect(call).rejects.toMatchObject({ reason: 'PLACEHOLDER_UNRESOLVED' })
  })
})

describe('a date', () => {
  test.each([
    ['{{args.since:date}}', '2026-01-05'],
    ['{{args.since:date(YYYY-MM-DD HH:mm:ss)}}', '2026-01-05 06:07:08'],
    ['{{args.since:date(YYYY-MM-DDTHH:mm:ssZ)}}', '2026-01-05T06:07:08+00:00'],
    ['{{args.since:date(YYYY-MM-DDTHH:mm:ss.SSSZZ)}}', '2026-01-05T06:07:08.090+0000'],
    ['{{args.since:date(MM/DD/YYYY)}}', '01/05/2026'],
    ["updated >= '{{args.since:date(YYYYMMDD)}}'", "updated >= '20260105'"],
    ['{{args.none:date}}', undefined],
  ])('%s is written as the API wants it', async (template, expected) => {
    const method = { path: '/items', query: { since: template } }
    const query = expected === undefined ? '' : `?since=${encodeURIComponent(expected).replaceAll("'", '%27')}`
    engine.upstream.script({ request: `GET /items${query}`, answer: { json: {} } })
    const target = { ...on('items', 'get'), args: { since: '2026-01-05T06:07:08.090Z' } }
    expect(await engine.call(config(method), target)).toMatchObject({ kind: 'ok' })
  })
})
