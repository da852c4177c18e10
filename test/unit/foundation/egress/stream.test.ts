import { EventEmitter, once } from 'node:events'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { zeros } from '../../../support/zero-stream.ts'
import { startRawUpstream, startUpstream } from './upstream.ts'

const client = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(() => client[Symbol.asyncDispose]())
afterEach(() => vi.useRealTimers())

const STREAM = { method: 'GET', headers: {}, timeoutMs: 60_000, maxResponseBytes: 100_000_000 }
const MEGABYTE = 1_000_000

async function collect(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('an answer', () => {
  it('is streamed as it was sent', async () => {
    const sent = gzipSync(Buffer.alloc(100_000))
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(sent)
    })
    const response = await client.stream({ ...STREAM, url: `${upstream.origin}/` })
    expect(response).toMatchObject({ status: 200, headers: { 'content-encoding': 'gzip' } })
    expect((await collect(response.body)).equals(sent)).toBe(true)
  })

  it('comes no faster than it is read', async () => {
    let written = 0
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n')
      const pour = () => {
        while (written < 50 * MEGABYTE) {
          written += 65_536
          if (!socket.write(Buffer.alloc(65_536))) return
        }
      }
      socket.on('drain', pour)
      pour()
    })
    const response = await client.stream({ ...STREAM, url: `${upstream.origin}/` })
    const reader = response.body[Symbol.asyncIterator]()
    await reader.next()
    await roundTrips()
    expect(written).toBeLessThan(20 * MEGABYTE)
    await reader.return?.()
  })

  it('closes its connection when its reader leaves', async () => {
    let closed: Promise<unknown> | undefined
    await using upstream = await startRawUpstream((socket) => {
      closed = once(socket, 'close')
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\nstart')
    })
    const response = await client.stream({ ...STREAM, url: `${upstream.origin}/` })
    for await (const _piece of response.body) break
    await closed
  })

  it('fails while it is read when the limit is passed, and not before', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end(Buffer.alloc(MEGABYTE)))
    const response = await client.stream({ ...STREAM, maxResponseBytes: 500_000, url: `${upstream.origin}/` })
    expect(response.status).toBe(200)
    await expect(collect(response.body)).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
  })

  it('fails at the start when nothing answers', async () => {
    await using upstream = await startRawUpstream(() => {})
    const call = client.stream({ ...STREAM, timeoutMs: 100, url: `${upstream.origin}/` })
    await expect(call).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
  })

  it('may take long as long as something moves, and fails once nothing does', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    const sockets = new EventEmitter<{ open: [Socket] }>()
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n')
      sockets.emit('open', socket)
    })
    const request = { ...STREAM, url: `${upstream.origin}/`, idleTimeoutMs: 150, timeoutMs: 60_000 }
    const [[socket], response] = await Promise.all([once(sockets, 'open'), client.stream(request)])
    const reader = response.body[Symbol.asyncIterator]()
    for (let piece = 0; piece < 5; piece++) {
      socket.write('x')
      await reader.next()
      vi.advanceTimersByTime(100)
    }
    vi.advanceTimersByTime(100)
    await expect(reader.next()).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
  })

  it('of a redirect is not read, and the address followed where that is wanted', async () => {
    await using upstream = await startUpstream(({ url }, response) => {
      if (url === '/new') response.end('here')
      else response.writeHead(302, { location: '/new' }).end('moved')
    })
    const followed = await client.stream({ ...STREAM, redirects: 1, url: `${upstream.origin}/old` })
    expect((await collect(followed.body)).toString()).toBe('here')
    const answered = await client.stream({ ...STREAM, url: `${upstream.origin}/old` })
    expect(answered.status).toBe(302)
    answered.body.destroy()
  })

  it('of a redirect that cannot be followed closes its connection', async () => {
    let closed: Promise<unknown> | undefined
    await using upstream = await startRawUpstream((socket) => {
      closed = once(socket, 'close')
      socket.write('HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 50000000\r\n\r\nstart')
    })
    const call = client.stream({ ...STREAM, redirects: 1, timeoutMs: 60_000, url: `${upstream.origin}/` })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
    await closed
  })

  it('that redirects on and on fails', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(302, { location: '/' }).end()
    })
    const call = client.stream({ ...STREAM, redirects: 3, url: `${upstream.origin}/` })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' })
    expect(upstream.seen).toHaveLength(4)
  })
})

describe('a body', () => {
  const POST = { ...STREAM, method: 'POST' }

  it('that was read is not sent again when the connection closes under it, not even with GET', async () => {
    let requests = 0
    await using upstream = await startRawUpstream((socket) => {
      requests++
      socket.destroy()
    })
    const call = client.stream({ ...STREAM, body: Readable.from([Buffer.from('x')]), url: `${upstream.origin}/` })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_UNREACHABLE' })
    expect(requests).toBe(1)
  })

  it('is sent piece by piece', async () => {
    await using upstream = await startUpstream(({ body }, response) => void response.end(body.toUpperCase()))
    async function* pieces() {
      yield Buffer.from('one ')
      yield Buffer.from('two')
    }
    const response = await client.stream({ ...POST, url: `${upstream.origin}/`, body: pieces() })
    expect((await collect(response.body)).toString()).toBe('ONE TWO')
    expect(upstream.seen[0]?.headers).toMatchObject({ 'transfer-encoding': 'chunked' })
  })

  it('of a known length is announced', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end())
    const body = Readable.from([Buffer.from('four')])
    const response = await client.stream({ ...POST, url: `${upstream.origin}/`, body, bodyBytes: 4 })
    await collect(response.body)
    expect(upstream.seen[0]?.headers).toMatchObject({ 'content-length': '4' })
    expect(upstream.seen[0]?.headers).not.toHaveProperty('transfer-encoding')
  })

  it('that is longer than announced fails the call', async () => {
    await using upstream = await startUpstream((_request, response) => void response.end())
    const body = Readable.from([Buffer.from('fourteen')])
    const call = client.stream({ ...POST, url: `${upstream.origin}/`, body, bodyBytes: 4 })
    await expect(call).rejects.toMatchObject({ reason: 'INVALID_FIELD' })
  })

  it('is read no faster than it is taken', async () => {
    const taken = new EventEmitter()
    await using upstream = await startRawUpstream((socket) => {
      socket.pause()
      taken.emit('first')
    })
    const source = zeros(50 * MEGABYTE)
    const abort = new AbortController()
    const call = client.stream({ ...POST, url: `${upstream.origin}/`, body: source.body, signal: abort.signal })
    await once(taken, 'first')
    await roundTrips()
    expect(source.produced()).toBeLessThan(20 * MEGABYTE)
    abort.abort()
    await expect(call).rejects.toMatchObject({ reason: 'CANCELLED' })
    await once(source.body, 'close')
  })

  it('that breaks off cancels the call', async () => {
    let closed: Promise<unknown> | undefined
    await using upstream = await startRawUpstream((socket) => {
      closed = once(socket, 'close')
    })
    async function* broken() {
      yield Buffer.alloc(100)
      throw new Error('the client went away')
    }
    const call = client.stream({ ...POST, url: `${upstream.origin}/`, body: broken() })
    await expect(call).rejects.toMatchObject({ reason: 'CANCELLED' })
    await closed
  })

  it('is released when the upstream disconnects, and the failure names the upstream', async () => {
    await using upstream = await startRawUpstream((socket) => socket.destroy())
    const source = zeros(50 * MEGABYTE)
    const released = once(source.body, 'close')
    const call = client.stream({ ...POST, url: `${upstream.origin}/`, body: source.body })
    await expect(call).rejects.toMatchObject({ reason: 'UPSTREAM_UNREACHABLE' })
    await released
  })

  it.each([
    ['an address that is not allowed', { url: 'http://10.0.0.1/' }, 'EGRESS_BLOCKED'],
    ['a header that cannot be sent', { url: 'http://127.0.0.1:1/', headers: { a: '\n' } }, 'INVALID_FIELD'],
    ['a port that refuses connections', { url: 'http://127.0.0.1:1/' }, 'UPSTREAM_UNREACHABLE'],
  ])('is left to its owner when it was not begun: %s', async (_why, request, reason) => {
    const { body, produced } = zeros(MEGABYTE)
    await expect(client.stream({ ...POST, ...request, body })).rejects.toMatchObject({ reason })
    expect([body.destroyed, produced()]).toEqual([false, 0])
  })
})

/** Round trips on other connections give a sender every chance to run ahead. */
async function roundTrips(): Promise<void> {
  await using other = await startUpstream((_request, answer) => void answer.end())
  for (let i = 0; i < 20; i++) await client.send({ ...STREAM, url: `${other.origin}/` })
}
