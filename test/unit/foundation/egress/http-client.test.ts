import { getEventListeners, once } from 'node:events'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import type { EgressRequest } from '../../../../src/foundation/egress/index.ts'
import { createEgressPolicy, createHttpClient, type EgressResponse } from '../../../../src/foundation/egress/index.ts'
import { startRawUpstream, startUpstream, type Upstream } from './upstream.ts'

const client = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8,::1/128' }), connectTimeoutMs: 500 })

afterAll(() => client[Symbol.asyncDispose]())

function get(url: string, more: Partial<EgressRequest> = {}): Promise<EgressResponse> {
  return client.send({ method: 'GET', url, headers: {}, timeoutMs: 60_000, maxResponseBytes: 100_000, ...more })
}

const text = (response: EgressResponse) => Buffer.from(response.body).toString()

describe('a call', () => {
  it('carries method, path, query, headers and body, and answers any status', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response
        .writeHead(418, { 'x-one': ['a', 'b'], 'set-cookie': 'secret=1', 'content-type': 'text/plain' })
        .end('tea')
    })
    const url = `${upstream.origin}/pot?size=2`
    const response = await get(url, { method: 'POST', headers: { 'X-Key': 'k' }, body: 'leaves' })
    expect(response).toMatchObject({ status: 418, url, headers: { 'x-one': 'a, b', 'content-type': 'text/plain' } })
    expect(response.headers).not.toHaveProperty('set-cookie')
    expect(response.cookies).toEqual({ secret: '1' })
    expect(text(response)).toBe('tea')
    expect(upstream.seen).toMatchObject([
      { method: 'POST', url: '/pot?size=2', body: 'leaves', headers: { 'x-key': 'k', 'content-length': '6' } },
    ])
  })

  it('keeps connections and reuses them', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end('ok'))
    for (let i = 0; i < 20; i++) await get(`${upstream.origin}/`)
    // Two, because a connection rests for one turn of the event loop before it is used again.
    expect(upstream.connections()).toBeLessThanOrEqual(2)
  })

  it('repeats a GET once when a kept connection closes under it', async () => {
    let requests = 0
    await using upstream = await startRawUpstream((socket) => {
      if (++requests === 1) socket.destroy()
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
    expect(text(await get(`${upstream.origin}/`))).toBe('ok')
    expect(requests).toBe(2)
  })

  it('does not repeat a POST', async () => {
    let requests = 0
    await using upstream = await startRawUpstream((socket) => {
      requests++
      socket.destroy()
    })
    await expect(get(`${upstream.origin}/`, { method: 'POST', body: 'x' })).rejects.toMatchObject({
      reason: 'UPSTREAM_UNREACHABLE',
    })
    expect(requests).toBe(1)
  })

  it('takes the answer of an upstream that does not wait for the body, and drops that connection', async () => {
    await using upstream = await startRawUpstream((socket, first) => {
      if (first.toString('latin1').startsWith('POST')) {
        socket.pause()
        socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig')
      } else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const response = await get(`${upstream.origin}/`, { method: 'POST', body: Buffer.alloc(20_000_000) })
    expect([response.status, text(response)]).toEqual([413, 'big'])
    for (let i = 0; i < 3; i++) expect(await get(`${upstream.origin}/`)).toMatchObject({ status: 200 })
  })

  it('sends a large body whole and with its length', async () => {
    await using upstream = await startUpstream(({ body, headers }, response) => {
      response.end(`${body.length} ${headers['content-length']} ${headers['transfer-encoding']}`)
    })
    const response = await get(`${upstream.origin}/`, { method: 'PUT', body: 'é'.repeat(100_000) })
    expect(text(response)).toBe('100000 200000 undefined')
  })
})

describe('headers', () => {
  it('that belong to the connection are not the caller’s', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end())
    const forged = { Host: 'internal', 'Content-Length': '99', 'Transfer-Encoding': 'chunked', Connection: 'upgrade' }
    await get(`${upstream.origin}/`, { headers: forged })
    expect(upstream.seen[0]?.headers).toMatchObject({ host: `127.0.0.1:${upstream.port}`, connection: 'keep-alive' })
    expect(upstream.seen[0]?.headers).not.toHaveProperty('transfer-encoding')
    expect(upstream.seen[0]?.headers).not.toHaveProperty('content-length')
  })

  it.each([
    ['a line break in a value', { 'x-a': 'a\r\nx-b: c' }],
    ['a bare line feed', { 'x-a': 'a\nb' }],
    ['NUL', { 'x-a': 'a\0' }],
    ['a character beyond Latin-1', { 'x-a': 'ж' }],
    ['a line break in a name', { 'x-a\r\nx-b': 'c' }],
    ['a space in a name', { 'x a': 'c' }],
  ])('with %s are refused', async (_case, headers) => {
    await expect(get('http://127.0.0.1:9/', { headers })).rejects.toMatchObject({ reason: 'INVALID_FIELD' })
  })

  it.each(['CONNECT', 'connect', 'TRACE', 'GET /x HTTP/1.1\r\n'])('with the method %j are rejected', async (method) => {
    await expect(get('http://127.0.0.1:9/', { method })).rejects.toMatchObject({ reason: 'INVALID_FIELD' })
  })
})

describe('redirects', () => {
  const CREDENTIALS = {
    authorization: 'Bearer s',
    cookie: 's',
    'x-api-key': 's',
    'proxy-authorization': 's',
    'x-odd': 's',
  }

  async function chain(status: number, location: (port: number) => string): Promise<Upstream> {
    const upstream: Upstream = await startUpstream(({ url }, response) => {
      if (url === '/start') response.writeHead(status, { location: location(upstream.port) }).end()
      else response.end('arrived')
    })
    return upstream
  }

  it('are answered as they are by default', async () => {
    await using upstream = await chain(302, () => '/next')
    expect(await get(`${upstream.origin}/start`)).toMatchObject({ status: 302, headers: { location: '/next' } })
  })

  it('within the origin keep the credentials', async () => {
    await using upstream = await chain(302, () => '/next?a=1')
    const response = await get(`${upstream.origin}/start`, { headers: CREDENTIALS, redirects: 1 })
    expect(response).toMatchObject({ status: 200, url: `${upstream.origin}/next?a=1` })
    expect(upstream.seen[1]?.headers).toMatchObject(CREDENTIALS)
  })

  it('to another origin lose every header that could be a credential', async () => {
    await using upstream = await chain(307, (port) => `http://localhost:${port}/next`)
    const headers = { ...CREDENTIALS, accept: 'application/json', 'user-agent': 'me' }
    await get(`${upstream.origin}/start`, { headers, redirects: 3 })
    for (const name of Object.keys(CREDENTIALS)) expect(upstream.seen[1]?.headers).not.toHaveProperty(name)
    expect(upstream.seen[1]?.headers).toMatchObject({ accept: 'application/json', 'user-agent': 'me' })
  })

  it.each([
    [301, 'GET', ''],
    [302, 'GET', ''],
    [303, 'GET', ''],
    [307, 'POST', 'form'],
    [308, 'POST', 'form'],
  ])('%i of a POST become a %s', async (status, method, body) => {
    await using upstream = await chain(status, () => '/next')
    await get(`${upstream.origin}/start`, { method: 'POST', body: 'form', redirects: 1 })
    expect(upstream.seen[1]).toMatchObject({ method, body })
  })

  it('do not carry a body to another origin', async () => {
    await using upstream = await chain(308, (port) => `http://localhost:${port}/next`)
    const call = get(`${upstream.origin}/start`, { method: 'POST', body: 'form', redirects: 1 })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
    expect(upstream.seen).toHaveLength(1)
  })

  it('end after the allowed number, three at most', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(302, { location: '/again' }).end()
    })
    const call = get(`${upstream.origin}/start`, { redirects: 50 })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
    expect(upstream.seen).toHaveLength(4)
  })
})

describe('an encoded answer', () => {
  const body = Buffer.from(JSON.stringify({ items: Array.from({ length: 500 }, (_, id) => ({ id })) }))
  it.each([
    ['gzip', gzipSync(body)],
    ['x-gzip', gzipSync(body)],
    ['deflate', deflateSync(body)],
    ['deflate', deflateRawSync(body)],
    ['br', brotliCompressSync(body)],
    ['zstd', zstdCompressSync(body)],
    ['gzip, br', brotliCompressSync(gzipSync(body))],
    ['identity', body],
    ['UTF-8', body],
  ])('in %s is decoded', async (encoding, encoded) => {
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(encoded)
    })
    const response = await get(`${upstream.origin}/`)
    expect(Buffer.from(response.body).equals(body)).toBe(true)
    expect(response.headers).not.toHaveProperty('content-encoding')
  })

  it('is decoded when it is too large for one go', async () => {
    const large = Buffer.alloc(3_000_000, 'abc')
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(large))
    })
    const response = await get(`${upstream.origin}/`, { maxResponseBytes: 3_000_000 })
    expect(Buffer.from(response.body).equals(large)).toBe(true)
  })

  const zeros = Buffer.alloc(50_000_000)
  it.each([
    ['a gzip bomb', 'gzip', gzipSync(zeros)],
    ['a deflate bomb', 'deflate', deflateSync(zeros)],
    ['a brotli bomb', 'br', brotliCompressSync(zeros)],
    ['a zstd bomb', 'zstd', zstdCompressSync(zeros)],
    ['a bomb in a bomb', 'gzip, gzip', gzipSync(gzipSync(zeros))],
    ['more layers than anyone uses', 'gzip, gzip, gzip', gzipSync(gzipSync(gzipSync('x')))],
    ['an unknown encoding', 'compress', Buffer.from('x')],
    ['a body that is not encoded', 'gzip', Buffer.from('{"plain":true}')],
    ['a truncated body', 'gzip', gzipSync('hello').subarray(0, 15)],
  ])('is refused: %s', async (_case, encoding, encoded) => {
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(encoded)
    })
    const call = get(`${upstream.origin}/`, { maxResponseBytes: 1_000_000 })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
  })
})

describe('an upstream that misbehaves', () => {
  it('is cut off at the size limit, whatever length it announces', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
      const pour = () => {
        while (!socket.destroyed && socket.write(chunk));
      }
      socket.on('drain', pour)
      pour()
    })
    await expect(get(`${upstream.origin}/`)).rejects.toMatchObject({
      reason: 'UPSTREAM_INVALID_RESPONSE',
      publicMessage: 'the answer of "127.0.0.1" is larger than 100000 bytes',
    })
  })

  it.each([
    ['says nothing', ''],
    ['stops in the head', 'HTTP/1.1 200 OK\r\nContent-'],
    ['stops in the body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
    ['sends interim answers only', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(3)],
  ])('does not hold the caller when it %s', async (_case, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.write(bytes))
    const call = get(`${upstream.origin}/`, { timeoutMs: 100 })
    await expect(call).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
  })

  it.each([
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['has two different lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'],
    ['has a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'],
    ['has a broken chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['has endless headers', `HTTP/1.1 200 OK\r\n${'x-filler: y\r\n'.repeat(10_000)}\r\n`],
  ])('is reported when its answer %s', async (_case, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.write(bytes))
    await expect(get(`${upstream.origin}/`)).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
  })

  it('is reported when it hangs up in the middle of the body', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    })
    await expect(get(`${upstream.origin}/`)).rejects.toMatchObject({ reason: /UPSTREAM_/ })
  })

  it('is unreachable when nothing listens', async () => {
    const gone = await startUpstream(() => {})
    await gone[Symbol.asyncDispose]()
    await expect(get(`${gone.origin}/`)).rejects.toMatchObject({
      reason: 'UPSTREAM_UNREACHABLE',
      publicMessage: 'the call to "127.0.0.1" failed: the connection was refused',
    })
  })

  it('is unreachable when its certificate cannot be checked', async () => {
    await using upstream = await startRawUpstream((socket) => socket.end('plain'))
    const call = get(`https://127.0.0.1:${upstream.port}/`)
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_UNREACHABLE' })
  })
})

describe('cancelling', () => {
  it('ends a call that is under way and closes its connection', async () => {
    let closed: Promise<unknown> | undefined
    const abort = new AbortController()
    await using upstream = await startRawUpstream((socket) => {
      closed = once(socket, 'close')
      abort.abort()
    })
    await expect(get(`${upstream.origin}/`, { signal: abort.signal })).rejects.toMatchObject({ reason: 'CANCELLED' })
    await closed
  })

  it('leaves nothing behind on a signal that outlives the call', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end())
    const { signal } = new AbortController()
    await get(`${upstream.origin}/`, { signal })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('before the start sends nothing', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end())
    const call = get(`${upstream.origin}/`, { signal: AbortSignal.abort() })
    await expect(call).rejects.toMatchObject({ reason: 'CANCELLED' })
    await get(`${upstream.origin}/after`)
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/after'])
  })

  it('happens to what is left when the client is disposed of', async () => {
    await using upstream = await startUpstream(() => {})
    const other = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
    const call = other.send({
      method: 'POST',
      url: `${upstream.origin}/`,
      headers: {},
      timeoutMs: 60_000,
      maxResponseBytes: 10,
    })
    await other[Symbol.asyncDispose]()
    await expect(call).rejects.toMatchObject({ reason: 'SHUTTING_DOWN' })
  })
})
