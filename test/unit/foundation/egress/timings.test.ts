import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import {
  classifyRequestFailure,
  createEgressPolicy,
  createHttpClient,
  type RequestTimings,
} from '../../../../src/foundation/egress/index.ts'
import { EVENTUALLY } from '../../../support/eventually.ts'
import { startRawUpstream } from './upstream.ts'

const RESOLVE_MS = 30
const client = createHttpClient({
  policy: createEgressPolicy({ allow: '127.0.0.0/8' }),
  connectTimeoutMs: 5_000,
  resolveAll: async (hostname) => {
    if (hostname === 'missing.example') throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    if (hostname === 'public.example')
      return [
        { address: '8.8.8.8', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ]
    await wait(RESOLVE_MS)
    return [{ address: '127.0.0.1', family: 4 }]
  },
})

async function timingsOf(url: string, timeoutMs = 5_000): Promise<RequestTimings> {
  const timings: RequestTimings = {}
  await client.send({ method: 'POST', url, headers: {}, body: 'x', timeoutMs, maxResponseBytes: 1_000, timings })
  return timings
}

async function classOf(url: string, timeoutMs = 5_000): Promise<string> {
  const error = await timingsOf(url, timeoutMs).catch((thrown: unknown) => thrown)
  if (!(error instanceof Failure)) throw new Error('the request did not fail')
  return classifyRequestFailure(error)
}

describe('the timings of a request', () => {
  it('have the phases of the connection that was opened for it, and none of one that was open', async () => {
    const server = createServer((_request, response) => setTimeout(() => response.end('ok'), RESOLVE_MS))
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://slow.example:${(server.address() as AddressInfo).port}/`
    const opened = await timingsOf(url)
    expect(opened).toEqual({
      dnsMs: expect.any(Number),
      connectMs: expect.any(Number),
      firstByteMs: expect.any(Number),
      remoteAddress: '127.0.0.1',
    })
    expect(opened.dnsMs).toBeGreaterThan(RESOLVE_MS - 5)
    expect(opened.firstByteMs).toBeGreaterThan((opened.dnsMs ?? 0) + RESOLVE_MS - 5)
    await new Promise(setImmediate) // the connection is returned to its pool
    expect(await timingsOf(url)).toEqual({ firstByteMs: expect.any(Number), remoteAddress: '127.0.0.1' })
  })

  it('belong to their own request when many are under way', async () => {
    const held: ServerResponse[] = []
    let lastArrivedAt = 0
    const server = createServer((request, response) => {
      if (request.url !== '/slow') return void response.end('ok')
      held.push(response)
      lastArrivedAt = performance.now()
    })
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const [first, fast, second, more] = ['/slow', '/', '/slow', '/'].map((path) => timingsOf(`${origin}${path}`))
    const firstBytes = (all: readonly (RequestTimings | undefined)[]) =>
      all.map((each) => each?.firstByteMs ?? Number.NaN)
    const quick = await Promise.all([fast, more])
    const quickMs = Math.max(...firstBytes(quick))
    // A request began before it arrived, so both slow ones have taken longer than the quick ones by then.
    await vi.waitUntil(() => held.length === 2 && performance.now() - lastArrivedAt > quickMs, EVENTUALLY)
    for (const response of held) response.end('ok')
    const slow = await Promise.all([first, second])
    expect(quickMs).toBeLessThan(Math.min(...firstBytes(slow)))
    expect([...quick, ...slow].every((each) => each?.connectMs !== undefined)).toBe(true)
  })
})

describe('the class of a failure', () => {
  it.each([
    ['blocked_egress', 'http://10.0.0.1/'],
    ['blocked_egress', 'http://public.example/'],
    ['dns', 'http://missing.example/'],
    ['connect', 'http://127.0.0.1:9/'],
  ])('is %s for %s', async (expected, url) => {
    expect(await classOf(url)).toBe(expected)
  })

  it.each([
    ['reset', (port: number) => `http://127.0.0.1:${port}/`],
    ['tls', (port: number) => `https://127.0.0.1:${port}/`],
  ])('is %s for a server that hangs up', async (expected, urlOf) => {
    const server = createTcpServer((socket) => {
      socket.once('data', () =>
        expected === 'tls' ? socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') : socket.destroy(),
      )
    })
    onTestFinished(() => void server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    expect(await classOf(urlOf((server.address() as AddressInfo).port))).toBe(expected)
  })

  it('is timeout_total for a server that does not answer', async () => {
    await using upstream = await startRawUpstream(() => {})
    expect(await classOf(`${upstream.origin}/`, 50)).toBe('timeout_total')
  })
})
