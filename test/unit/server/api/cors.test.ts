import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport as createNodeTransport } from '@connectrpc/connect-node'
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web'
import { describe, expect, it } from 'vitest'
import { documentRoute } from '../../../../src/server/api/http/routes.ts'
import { readConfig } from '../../../../src/server/config/index.ts'
import { browserFetch } from './support/browser-fetch.ts'
import { serverStream, unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, http2, JSON_BODY } from './support/http.ts'

const PAGE = 'https://app.example.com'
const OTHER = 'https://evil.example.com'
const RPC = '/widget.v1.WidgetService'
const start = (corsOrigins: readonly string[] = [PAGE], more = {}) =>
  startHarness({ corsOrigins, extraRoutes: [documentRoute('/document.json', () => ({}))], ...more })

/** What a browser can call, and how. */
const TRANSPORTS: readonly (readonly [
  name: string,
  create: (baseUrl: string, fetch: typeof globalThis.fetch) => Transport,
])[] = [
  ['Connect, JSON', (baseUrl, fetch) => createConnectTransport({ baseUrl, fetch })],
  ['Connect, binary', (baseUrl, fetch) => createConnectTransport({ baseUrl, fetch, useBinaryFormat: true })],
  ['Connect, GET', (baseUrl, fetch) => createConnectTransport({ baseUrl, fetch, useHttpGet: true })],
  ['gRPC-Web', (baseUrl, fetch) => createGrpcWebTransport({ baseUrl, fetch })],
  ['gRPC-Web, JSON', (baseUrl, fetch) => createGrpcWebTransport({ baseUrl, fetch, useBinaryFormat: false })],
]

describe.each(TRANSPORTS)('a page of an allowed origin over %s', (_, create) => {
  it('calls, reads headers, and gets of errors with their details', async () => {
    await using harness = await start()
    const transport = create(harness.baseUrl, browserFetch(PAGE))
    const headers = { ...AS_ENVIRONMENT, 'x-request-id': 'from-a-page' }
    const answer = await transport.unary(unary('Get'), undefined, 5_000, headers, { id: WIDGET_ID } as never)
    expect(answer.message).toMatchObject({ id: WIDGET_ID })
    expect(answer.header.get('x-request-id')).toBe('from-a-page')
    const busy = transport.unary(unary('Fail'), undefined, 5_000, AS_ENVIRONMENT, { how: 'busy' } as never)
    const error = ConnectError.from(await busy.catch((reason) => reason))
    expect([error.code, error.details.length > 0]).toEqual([Code.ResourceExhausted, true])
    expect(error.metadata.get('retry-after')).toBe('3')
  })

  it('reads a stream, and gets when it has no token', async () => {
    await using harness = await start()
    const transport = create(harness.baseUrl, browserFetch(PAGE))
    const read = async (headers: Record<string, string>) => {
      const request = (async function* () {
        yield { count: 3 } as never
      })()
      const { message } = await transport.stream(serverStream('Watch'), undefined, 5_000, headers, request)
      const names: string[] = []
      for await (const widget of message) names.push(String(Reflect.get(widget, 'name')))
      return names
    }
    expect(await read(AS_ENVIRONMENT)).toEqual(['0', '1', '2'])
    const error = ConnectError.from(await read({}).catch((reason) => reason))
    expect(error.code).toBe(Code.Unauthenticated)
  })
})

describe('a page of an allowed origin', () => {
  it.each([
    ['an answer', 'GET', `/widget/${WIDGET_ID}`, 200],
    ['a change', 'PATCH', `/widget/${WIDGET_ID}`, 200],
    ['a deletion', 'DELETE', `/widget/${WIDGET_ID}`, 200],
    ['a document', 'GET', '/document.json', 200],
    ['an unknown path', 'GET', '/nothing', 404],
    ['a verb the path does not take', 'PUT', '/widget', 405],
    ['an invalid id', 'GET', '/widget/7', 400],
    ['an unknown RPC', 'POST', `${RPC}/Nothing`, 404],
  ])('may read %s', async (_, method, path, status) => {
    await using harness = await start()
    const answer = await browserFetch(PAGE)(harness.baseUrl + path, { method, headers: AS_ENVIRONMENT })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('x-request-id')).not.toBeNull()
  })

  it('may read that its token is missing or its budget used up, and when to come back', async () => {
    await using harness = await start([PAGE], { limits: { rateRequestsMax: 1 } })
    const fetch = browserFetch(PAGE)
    const url = `${harness.baseUrl}/widget/${WIDGET_ID}`
    expect((await fetch(url)).status).toBe(401)
    const first = await fetch(url, { headers: AS_ENVIRONMENT })
    expect([first.headers.get('etag'), first.headers.get('ratelimit-limit')]).toEqual(['"v1"', '1'])
    const second = await fetch(url, { headers: AS_ENVIRONMENT })
    expect([second.status, Number(second.headers.get('retry-after')) > 0]).toEqual([429, true])
  })

  it('may send every header of the API, and those for a third party', async () => {
    await using harness = await start()
    const names = ['idempotency-key', 'if-match', 'patchbay-environment', 'patchbay-upstream-x-any', 'x-server-timeout']
    const headers = { ...JSON_BODY, ...Object.fromEntries(names.map((name) => [name, '5'])) }
    const preflights: Response[] = []
    await browserFetch(PAGE, preflights)(`${harness.baseUrl}/widget/${WIDGET_ID}`, {
      method: 'PATCH',
      headers,
      body: '{}',
    })
    expect(preflights.map(({ status }) => status)).toEqual([204])
    expect(preflights[0]?.headers.get('access-control-max-age')).toBe('7200')
  })

  it.each(['/widget', `${RPC}/Create`, `${RPC}/Watch`, `${RPC}/Chat`, '/document.json', '/nothing', '/proxy/contacts'])(
    'has its preflight answered without a token: %s',
    async (path) => {
      await using harness = await start()
      for (const http of [http1, http2]) {
        const headers = {
          origin: PAGE,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type',
          'access-control-request-private-network': 'true',
        }
        const answer = await http(harness.baseUrl, path, { method: 'OPTIONS', headers })
        expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([204, PAGE])
        expect(answer.headers.get('access-control-allow-headers')).toBe('authorization,content-type')
        expect(answer.headers.get('vary')).toBe('Origin')
        expect(answer.headers.has('access-control-allow-private-network')).toBe(false)
        expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
      }
    },
  )

  it('may read the head of a two-way stream that is rejected', async () => {
    await using harness = await start()
    const headers = { origin: PAGE, 'content-type': 'application/connect+json' }
    const answer = await http2(harness.baseUrl, `${RPC}/Chat`, { method: 'POST', headers, body: '' })
    expect(answer.headers.get('access-control-allow-origin')).toBe(PAGE)
  })
})

describe('a page of another origin', () => {
  it('is kept out by its browser, and caches are told that the origin matters', async () => {
    await using harness = await start()
    const url = `${harness.baseUrl}/widget/${WIDGET_ID}`
    await expect(browserFetch(OTHER)(url)).rejects.toThrow('not allowed')
    await expect(browserFetch(OTHER)(url, { headers: AS_ENVIRONMENT })).rejects.toThrow('not allowed')
    for (const headers of [{ origin: OTHER }, { origin: 'null' }, { origin: `${PAGE}.evil.com` }, {}]) {
      const answer = await http1(harness.baseUrl, '/document.json', { headers })
      expect([answer.headers.has('access-control-allow-origin'), answer.headers.get('vary')]).toEqual([false, 'Origin'])
    }
  })

  it('is let in by *, which needs no vary', async () => {
    await using harness = await start(['*'])
    const answer = await browserFetch(OTHER)(`${harness.baseUrl}/widget/${WIDGET_ID}`, { headers: AS_ENVIRONMENT })
    expect([answer.status, answer.headers.get('vary')]).toEqual([200, null])
  })

  it('is kept out unless something is configured', async () => {
    await using harness = await start([])
    await expect(browserFetch(PAGE)(`${harness.baseUrl}/document.json`)).rejects.toThrow('not allowed')
    const headers = { origin: PAGE, 'access-control-request-method': 'GET' }
    const answer = await http1(harness.baseUrl, '/widget', { method: 'OPTIONS', headers })
    expect([answer.status, [...answer.headers.keys()].filter((name) => /^(access|vary)/.test(name))]).toEqual([204, []])
  })
})

describe('PATCHBAY_CORS_ORIGINS', () => {
  const read = (text: string) => readConfig({ PATCHBAY_CORS_ORIGINS: text }).corsOrigins

  it.each([
    ['', []],
    ['*', ['*']],
    [PAGE, [PAGE]],
    [`${PAGE}, http://localhost:5173`, [PAGE, 'http://localhost:5173']],
  ])('takes "%s"', (text, origins) => {
    expect(read(text)).toEqual(origins)
  })

  it.each([
    'null',
    'app.example.com',
    `${PAGE}/`,
    `${PAGE}/path`,
    'https://*.example.com',
    'HTTPS://APP.example.com',
    `*,${PAGE}`,
  ])('rejects "%s"', (text) => {
    expect(() => read(text)).toThrow('PATCHBAY_CORS_ORIGINS takes')
  })
})

it('a client that sends no origin sees no difference', async () => {
  await using harness = await start()
  const transport = createNodeTransport({ baseUrl: harness.baseUrl, httpVersion: '1.1' })
  const { header } = await transport.unary(unary('Get'), undefined, 5_000, AS_ENVIRONMENT, { id: WIDGET_ID } as never)
  expect(header.has('access-control-allow-origin')).toBe(false)
})
