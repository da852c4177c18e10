import { once } from 'node:events'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { startTestApp } from '../support/app.ts'
import { createApiEnvironment, firstTenant } from '../support/seeded-tenant.ts'
import { type ScriptedAnswer, startUpstream } from '../support/upstream.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from './calls.ts'

const upstream = await startUpstream()
const app = await startTestApp({
  ...LOCAL_UPSTREAM,
  PATCHBAY_RATE_LIMIT: '100000',
  PATCHBAY_CORS_ORIGINS: 'https://app.example.com',
})
const tenant = firstTenant(app)
const { accountId } = await connectAccount(app, tenant, callDefinition(upstream.url))
const sandbox = await connectAccount(app, tenant, callDefinition(upstream.url), { is_sandbox: true })
const elsewhere = { ...tenant, ...(await createApiEnvironment(app, tenant.teamToken)) }
const foreign = await connectAccount(app, elsewhere, callDefinition(upstream.url))

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly account?: string
}

/** One request to a path that has its query, with the account's id added. */
async function send(verb: string, path: string, { headers, body, account = accountId }: Sent = {}) {
  const url = `${app.url}${path}${path.includes('?') ? '&' : '?'}integrated_account_id=${account}`
  const response = await fetch(url, {
    method: verb,
    headers: { authorization: `Bearer ${tenant.environmentToken}`, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = bytes.length > 0 && response.headers.get('content-type') === 'application/json'
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    json: isJson ? JSON.parse(bytes.toString()) : undefined,
  }
}

const asJson = (value: unknown, headers = {}): Sent => ({
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
})
const reasonOf = ({ json }: Awaited<ReturnType<typeof send>>) => json?.error?.details?.[0]?.reason
const fieldsOf = ({ json }: Awaited<ReturnType<typeof send>>) =>
  json?.error?.details?.[1]?.field_violations.map(({ field }: { field: string }) => field)

describe('/proxy', () => {
  it.each<[string, string, unknown, string, unknown?]>([
    ['GET', '/proxy/contacts/7', undefined, 'GET /contacts/7'],
    ['GET', '/proxy/contacts/a%2Fb', undefined, 'GET /contacts/a%2Fb'],
    ['POST', '/proxy/contacts', { name: 'Ann' }, 'POST /contacts', { name: 'Ann' }],
    ['PATCH', '/proxy/contacts/7', { name: 'Ann' }, 'PATCH /contacts/7', { name: 'Ann' }],
    ['PUT', '/proxy/contacts/7', { name: 'Ann' }, 'PATCH /contacts/7', { name: 'Ann' }],
    ['DELETE', '/proxy/contacts/7', undefined, 'DELETE /contacts/7'],
    ['POST', '/proxy/contacts/7/merge', { into: 8 }, 'POST /contacts/7/merge', { into: 8 }],
    ['GET', '/proxy/contacts/_/whoami', undefined, 'GET /me'],
    ['POST', '/proxy/_/sign_off', undefined, 'POST /sign-off'],
    ['GET', '/proxy/contacts/7?x=1&x=2&y[z]=3', undefined, 'GET /contacts/7?x=1&x=2&y[z]=3'],
    ['POST', '/proxy/contacts/import', { a: 1 }, 'POST /contacts/import?mode=all', { a: 1 }],
    ['POST', '/proxy/contacts/import?args[mode]=new', { a: 1 }, 'POST /contacts/import?mode=new', { a: 1 }],
    ['POST', '/proxy/contacts/_/import?args[mode]=new', { a: 1 }, 'POST /contacts/import?mode=new', { a: 1 }],
    [
      ...(['POST', '/proxy/_/archive', { args: { year: 2026, keep: 5 }, note: 'n' }] as const),
      ...(['POST /archive/2026', { keep: 5, note: 'n' }] as const),
    ],
    [
      'POST',
      '/proxy/_/archive?args[year]=2026&args[keep]=5',
      { note: 'n' },
      'POST /archive/2026',
      { keep: '5', note: 'n' },
    ],
    [
      ...(['POST', '/proxy/_/archive?args=%7B%22year%22:2026,%22keep%22:5%7D', { note: 'n' }] as const),
      ...(['POST /archive/2026', { keep: 5, note: 'n' }] as const),
    ],
  ])('%s %s', async (verb, path, body, request, sent) => {
    upstream.script({ request, ...(sent === undefined ? {} : { body: sent as never }), answer: { json: { ok: true } } })
    const answer = await send(verb, path, body === undefined ? {} : asJson(body))
    expect([answer.status, answer.json]).toEqual([200, { result: { ok: true } }])
  })

  it('pages with a cursor and a size', async () => {
    upstream.script(
      { request: 'GET /contacts?page=1&limit=5', answer: { json: { data: [1, 2, 3, 4, 5] } } },
      { request: 'GET /contacts?page=2&limit=5', answer: { json: { data: [] } } },
    )
    const first = await send('GET', '/proxy/contacts?limit=5')
    expect(first.json).toEqual({ result: [1, 2, 3, 4, 5], next_cursor: expect.any(String) })
    const last = await send('GET', `/proxy/contacts?next_cursor=${first.json.next_cursor}`)
    expect(last.json).toEqual({ result: [], stop_reason: 'empty_page' })
  })

  it('answers HEAD like GET, without the body', async () => {
    upstream.script({ request: 'GET /contacts/7', answer: { json: { id: 7 } } })
    const { status, bytes, headers } = await send('HEAD', '/proxy/contacts/7')
    expect([status, bytes.length, headers.get('content-length')]).toEqual([200, 0, '19'])
  })

  it('sends headers that are meant for the third party, and no others', async () => {
    upstream.script({
      request: 'GET /contacts/7',
      headers: { 'x-tenant': 'acme', authorization: 'Bearer k-123', 'x-own': null, 'patchbay-upstream-x-tenant': null },
      answer: { json: {} },
    })
    const headers = {
      'patchbay-upstream-x-tenant': 'acme',
      'patchbay-upstream-authorization': 'Bearer stolen',
      'x-own': '1',
    }
    expect((await send('GET', '/proxy/contacts/7', { headers })).status).toBe(200)
  })

  it.each([401, 403, 404, 422, 500])('passes a %i on in which the expression finds no error', async (status) => {
    const body = { error: 'k-123 is unknown', n: 1 }
    upstream.script({ request: 'GET /peek', answer: { status, json: body } })
    const answer = await send('GET', '/proxy/contacts/_/peek')
    expect([answer.status, answer.json]).toEqual([status, { result: { error: '*** is unknown', n: 1 } }])
  })

  it('tells the rate limit of the third party as RateLimit-*, and its own as Patchbay-RateLimit-*', async () => {
    const limits = ({ headers }: { headers: Headers }, prefix = '') =>
      ['limit', 'remaining', 'reset'].map((part) => headers.get(`${prefix}ratelimit-${part}`))
    upstream.script(
      { request: 'GET /contacts/7', answer: { json: {}, headers: { 'x-limit': '60', 'x-left': '59' } } },
      { request: 'GET /contacts/8', answer: { json: {} } },
    )
    expect(limits(await send('GET', '/proxy/contacts/7'))).toEqual(['60', '59', null])
    const untold = await send('GET', '/proxy/contacts/8')
    expect(limits(untold)).toEqual([null, null, null])
    expect(limits(untold, 'patchbay-')[0]).toBe('100000')
  })

  it('answers a rate limit at once', async () => {
    upstream.script({ request: 'GET /contacts/7', answer: { status: 429, json: {}, headers: { 'retry-after': '9' } } })
    const answer = await send('GET', '/proxy/contacts/7')
    expect([answer.status, reasonOf(answer), answer.headers.get('retry-after')]).toEqual([
      429,
      'UPSTREAM_RATE_LIMITED',
      '9',
    ])
  })

  it('shows the body of an error when asked to', async () => {
    upstream.script({ request: 'GET /contacts/7', answer: { status: 404, json: { message: 'no', code: 4 } }, times: 2 })
    expect((await send('GET', '/proxy/contacts/7')).json.error).not.toHaveProperty('raw')
    expect((await send('GET', '/proxy/contacts/7?include_raw=true')).json.error.raw).toEqual({ message: 'no', code: 4 })
  })

  it('shows in a dry run what would be sent, a write too', async () => {
    const answer = await send('POST', '/proxy/contacts?dry_run=true', asJson({ name: 'Ann' }))
    expect(answer.json).toMatchObject({ dry_run: { method: 'POST', body: '{"name":"Ann"}', is_write: true } })
    expect(upstream.requests).toEqual([])
  })
})

describe('what /proxy rejects', () => {
  it.each<[string, string, string, Sent, number, string]>([
    ['an unknown resource', 'GET', '/proxy/contact', {}, 400, 'METHOD_NOT_DEFINED'],
    ['an unknown method', 'POST', '/proxy/contacts/7/drop', {}, 400, 'METHOD_NOT_DEFINED'],
    ['an unknown action', 'POST', '/proxy/_/drop', {}, 400, 'METHOD_NOT_DEFINED'],
    ['a path that is none', 'GET', '/proxy/a/b/c/d', {}, 404, 'ROUTE_NOT_FOUND'],
    ['no resource', 'GET', '/proxy/', {}, 404, 'ROUTE_NOT_FOUND'],
    ['a verb without meaning', 'DELETE', '/proxy/contacts', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['a POST to a record', 'POST', '/proxy/contacts/7', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['a POST below an unknown resource', 'POST', '/proxy/contact/import', {}, 400, 'METHOD_NOT_DEFINED'],
    ['arguments that are no object', 'POST', '/proxy/_/archive', asJson({ args: 1 }), 400, 'INVALID_FIELD'],
    ['arguments in query and body', 'POST', '/proxy/_/archive?args[a]=1', asJson({ args: {} }), 400, 'INVALID_FIELD'],
    ['a verb nobody has', 'PURGE', '/proxy/contacts', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['an unknown account', 'GET', '/proxy/contacts', { account: newId() }, 404, 'RESOURCE_NOT_FOUND'],
    ['an account that is no id', 'GET', '/proxy/contacts', { account: 'mine' }, 400, 'INVALID_FIELD'],
    [
      'a write in a sandbox',
      'POST',
      '/proxy/contacts',
      { account: sandbox.accountId },
      405,
      'SANDBOX_ACCOUNT_READ_ONLY',
    ],
    ['a missing id', 'GET', '/proxy/contacts/_', {}, 400, 'PLACEHOLDER_UNRESOLVED'],
    ['a bad cursor', 'GET', '/proxy/contacts?next_cursor=x', {}, 400, 'PAGE_TOKEN_INVALID'],
    [
      'JSON that is none',
      'POST',
      '/proxy/contacts',
      { body: '{"a":', headers: { 'content-type': 'application/json' } },
      400,
      'MALFORMED_BODY',
    ],
    [
      'a key twice',
      'POST',
      '/proxy/contacts',
      { body: '{"a":1,"a":2}', headers: { 'content-type': 'application/json' } },
      400,
      'MALFORMED_BODY',
    ],
    [
      'a key that reaches prototypes',
      'POST',
      '/proxy/contacts',
      { body: '{"__proto__":{}}', headers: { 'content-type': 'application/json' } },
      400,
      'INVALID_FIELD',
    ],
    ['a text with NUL', 'POST', '/proxy/contacts', asJson({ a: '\u0000' }), 400, 'INVALID_FIELD'],
    [
      'JSON that is too deep',
      'POST',
      '/proxy/contacts',
      asJson(JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`)),
      400,
      'INVALID_FIELD',
    ],
    [
      'JSON that is too large',
      'POST',
      '/proxy/contacts',
      asJson('x'.repeat(5 * 1024 * 1024)),
      413,
      'REQUEST_TOO_LARGE',
    ],
    [
      'an unknown compression',
      'POST',
      '/proxy/contacts',
      asJson({}, { 'content-encoding': 'zip' }),
      415,
      'COMPRESSION_UNSUPPORTED',
    ],
    [
      'a header that cannot be',
      'GET',
      '/proxy/contacts/7',
      { headers: { 'patchbay-upstream-': 'x' } },
      400,
      'INVALID_FIELD',
    ],
  ])('%s', async (_, verb, path, sent, status, reason) => {
    const answer = await send(verb, path, sent)
    expect([answer.status, reasonOf(answer)]).toEqual([status, reason])
    expect(upstream.requests).toEqual([])
  })

  it('a strange token, before anything else', async () => {
    const answer = await send('GET', '/proxy/x/y/z/z', { headers: { authorization: 'Bearer pb_nothing' } })
    expect([answer.status, reasonOf(answer)]).toEqual([401, 'TOKEN_INVALID'])
  })

  it('an account of another environment, in the words for an unknown one', async () => {
    const unknown = newId()
    const texts = await Promise.all(
      [unknown, foreign.accountId].map(async (account) => {
        const answer = await send('GET', '/proxy/contacts', { account })
        return [answer.status, answer.bytes.toString().replaceAll(account, '<id>')]
      }),
    )
    expect(texts[1]).toEqual(texts[0])
  })

  it('everything that is wrong with the query at once', async () => {
    expect(fieldsOf(await send('GET', '/proxy/contacts?limit=0&dry_run=si&a[b]=1&a=2', { account: 'x' }))).toEqual([
      'a',
      'integrated_account_id',
      'limit',
      'dry_run',
    ])
  })

  it('a verb, naming those that would do', async () => {
    expect((await send('DELETE', '/proxy/contacts')).headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST')
    expect((await send('GET', '/proxy/_/sign_off')).headers.get('allow')).toBe('OPTIONS, POST')
    expect((await send('POST', '/proxy/contacts/7')).headers.get('allow')).toBe(
      'DELETE, GET, HEAD, OPTIONS, PATCH, PUT',
    )
    expect((await send('OPTIONS', '/proxy/contacts')).headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST')
  })
})

describe('bytes', () => {
  const PICTURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2, 255, 254])
  const large = Buffer.alloc(3_000_000, 'abcdefgh')

  it('that a definition calls binary are answered as they are', async () => {
    const headers = {
      'content-type': 'image/png',
      etag: '"v1"',
      'set-cookie': 'a=b',
      'strict-transport-security': 'max-age=9',
      'access-control-allow-origin': '*',
      vary: 'Accept',
    }
    upstream.script({ request: 'GET /files/7', answer: { bytes: PICTURE, headers } })
    const answer = await send('GET', '/proxy/files/7')
    expect([answer.status, answer.bytes.equals(PICTURE)]).toEqual([200, true])
    expect(
      ['content-type', 'etag', 'set-cookie', 'strict-transport-security', 'access-control-allow-origin', 'vary'].map(
        (name) => answer.headers.get(name),
      ),
    ).toEqual(['image/png', '"v1"', null, null, null, 'Accept, Origin'])
    expect(answer.headers.get('x-request-id')).not.toBeNull()
  })

  it('that are not JSON pass through to a described method, however many', async () => {
    upstream.script({
      request: 'POST /files',
      headers: { 'content-type': 'text/plain', 'content-length': String(large.length), authorization: 'Bearer k-123' },
      body: large.toString(),
      answer: { status: 201, json: { id: 1 } },
    })
    const answer = await send('POST', '/proxy/files', { headers: { 'content-type': 'text/plain' }, body: large })
    expect([answer.status, answer.json]).toEqual([201, { id: 1 }])
  })

  it('that fail upstream are answered as an error', async () => {
    upstream.script({ request: 'GET /files/7', answer: { status: 404, json: { message: 'gone' } } })
    const answer = await send('GET', '/proxy/files/7')
    expect([answer.status, reasonOf(answer)]).toEqual([404, 'UPSTREAM_ERROR'])
  })
})

describe('/custom', () => {
  it.each(['/custom/page', '/proxy/files/page'])('%s obeys no proxy command of a third party', async (path) => {
    const commands = ['x-accel-redirect', 'x-accel-expires', 'x-sendfile', 'x-lighttpd-send-file']
    upstream.script({
      request: `GET ${path.replace('/custom', '').replace('/proxy', '')}`,
      answer: {
        text: 'own',
        headers: { ...Object.fromEntries(commands.map((name) => [name, '/x'])), 'x-accel-buffering': 'yes' },
      },
    })
    const { headers } = await send('GET', path)
    expect(commands.map((name) => headers.get(name))).toEqual(commands.map(() => null))
    // Streams pass unbuffered.
    expect(headers.get('x-accel-buffering')).toBe('no')
  })

  it.each(['/custom/page', '/proxy/files/page'])(
    '%s passes on no page of a third party that a browser would run',
    async (path) => {
      upstream.script({
        request: `GET ${path.replace('/custom', '').replace('/proxy', '')}`,
        answer: {
          text: '<script>1</script>',
          headers: {
            'content-type': 'text/html',
            refresh: '0; url=https://evil.example',
            'content-security-policy': 'default-src *',
            'x-content-type-options': 'sniff',
          },
        },
      })
      const { headers } = await send('GET', path)
      expect(headers.get('content-type')).toBe('text/html')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/)
      expect(headers.get('refresh')).toBeNull()
    },
  )

  const ANSWER: ScriptedAnswer = {
    status: 202,
    text: '<ok/>',
    headers: { 'content-type': 'application/xml', 'x-version': '3' },
  }

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])(
    'passes %s on, path and query letter by letter',
    async (verb) => {
      upstream.script({
        request: `${verb} /a/b%20c/?x=%41&limit=1&x=2`,
        headers: { authorization: 'Bearer k-123' },
        answer: ANSWER,
      })
      const answer = await send(verb, '/custom/a/b%20c/?x=%41&limit=1&x=2')
      expect([answer.status, answer.bytes.toString()]).toEqual([202, '<ok/>'])
      expect([answer.headers.get('content-type'), answer.headers.get('x-version')]).toEqual(['application/xml', '3'])
    },
  )

  it('passes any body on as it is, and says what it is', async () => {
    const body = gzipSync('hello')
    upstream.script({
      request: 'POST /upload',
      headers: {
        'content-type': 'application/x-thing',
        'content-encoding': 'gzip',
        'content-length': String(body.length),
      },
      answer: { bytes: Buffer.from([1, 2, 0, 255]) },
    })
    const headers = { 'content-type': 'application/x-thing', 'content-encoding': 'gzip' }
    expect((await send('POST', '/custom/upload', { headers, body })).bytes).toEqual(Buffer.from([1, 2, 0, 255]))
  })

  it('leaves the encoding of the answer to the client', async () => {
    const zipped = gzipSync('hello')
    upstream.script(
      {
        request: 'GET /z',
        headers: { 'accept-encoding': 'gzip' },
        answer: { bytes: zipped, headers: { 'content-encoding': 'gzip' } },
      },
      { request: 'GET /z', headers: { 'accept-encoding': 'identity' }, answer: { text: 'hello' } },
    )
    expect((await send('GET', '/custom/z', { headers: { 'accept-encoding': 'gzip' } })).bytes.toString()).toBe('hello')
    expect((await send('GET', '/custom/z', { headers: { 'accept-encoding': 'identity' } })).bytes.toString()).toBe(
      'hello',
    )
  })

  it('answers HEAD without a body', async () => {
    upstream.script({ request: 'HEAD /a', answer: { headers: { 'x-version': '3' } } })
    const answer = await send('HEAD', '/custom/a')
    expect([answer.status, answer.headers.get('x-version')]).toEqual([200, '3'])
  })

  it('tells an error with what the third party said', async () => {
    upstream.script({ request: 'GET /a', answer: { status: 418, json: { message: 'teapot' } } })
    const answer = await send('GET', '/custom/a')
    expect([answer.status, reasonOf(answer), answer.json.error.raw]).toEqual([
      418,
      'UPSTREAM_ERROR',
      { message: 'teapot' },
    ])
  })

  it.each<[string, string, string, Sent, number, string]>([
    ['an unknown account', 'GET', '/custom/a', { account: newId() }, 404, 'RESOURCE_NOT_FOUND'],
    ['an account that is no id', 'GET', '/custom/a', { account: '1' }, 400, 'INVALID_FIELD'],
    ['two accounts', 'GET', `/custom/a?integrated_account_id=${accountId}`, {}, 400, 'INVALID_FIELD'],
    ['a write in a sandbox', 'POST', '/custom/a', { account: sandbox.accountId }, 405, 'SANDBOX_ACCOUNT_READ_ONLY'],
    ['a foreign account', 'GET', '/custom/a', { account: foreign.accountId }, 404, 'RESOURCE_NOT_FOUND'],
  ])('rejects %s', async (_, verb, path, sent, status, reason) => {
    const answer = await send(verb, path, sent)
    expect([answer.status, reasonOf(answer)]).toEqual([status, reason])
    expect(upstream.requests).toEqual([])
  })

  it.each(['/custom/a/../b', '/custom/a/%2e%2e/b', '/custom/a/..'])('rejects a path that climbs: %s', async (path) => {
    const { port } = new URL(app.url)
    const target = `${path}?integrated_account_id=${accountId}`
    const authorization = `Bearer ${tenant.environmentToken}`
    // Any client that parses the address would resolve the path by itself.
    const [response] = await once(get({ port, path: target, headers: { authorization } }), 'response')
    expect([response.statusCode, await text(response)]).toEqual([
      400,
      expect.stringContaining('PLACEHOLDER_UNRESOLVED'),
    ])
    expect(upstream.requests).toEqual([])
  })
})
