import { connect as connectHttp2 } from 'node:http2'
import { Code } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import { serverStream, unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, JSON_BODY, rawConnection } from './support/http.ts'
import { ALL_WIRES } from './support/protocols.ts'

const DEADLINE_MS = 5_000
const GET = `GET /widget/${WIDGET_ID} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer env\r\n\r\n`

describe('a drain', () => {
  it.each(ALL_WIRES)('lets calls under way finish over $name', async (wire) => {
    await using harness = await startHarness()
    const client = wire.connect(harness.baseUrl)
    const call = client.send(unary('Wait'), { id: WIDGET_ID }, AS_ENVIRONMENT)
    await harness.events.waiting.promise
    const drained = harness.server.drain(DEADLINE_MS)
    harness.events.release.resolve()
    expect(await call).toMatchObject({ ok: true })
    client.close()
    await drained
  })

  it('says so in health first and accepts nobody new', async () => {
    await using harness = await startHarness()
    expect(harness.health.isServing('')).toBe(true)
    const drained = harness.server.drain(DEADLINE_MS)
    expect(harness.health.isServing('')).toBe(false)
    await expect(http1(harness.baseUrl, `/widget/${WIDGET_ID}`)).rejects.toThrow()
    await drained
  })

  it('takes requests for its grace, and closes each connection with its answer', async () => {
    const grace = Promise.withResolvers<void>()
    const clock: Clock = { ...systemClock, sleep: () => grace.promise }
    await using harness = await startHarness({ limits: { drainGraceMs: 1_000 }, clock })
    const [idle, busy] = await Promise.all([1, 2].map(() => rawConnection(harness.port)))
    idle?.socket.write(GET)
    expect(await idle?.until(/"etag"/)).toMatch(/connection: keep-alive/i)
    busy?.socket.write(
      `POST /widget/${WIDGET_ID}/wait HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer env\r\nContent-Length: 2\r\n\r\n{}`,
    )
    await harness.events.waiting.promise
    const drained = harness.server.drain(DEADLINE_MS)
    expect(harness.health.isServing('')).toBe(false)
    idle?.socket.write(GET)
    harness.events.release.resolve()
    const fresh = await http1(harness.baseUrl, `/widget/${WIDGET_ID}`)
    expect([fresh.status, fresh.headers.get('connection')]).toEqual([200, 'close'])
    await Promise.all([idle?.closed, busy?.closed])
    expect(idle?.text().match(/HTTP\/1.1 200/g)).toHaveLength(2)
    expect(busy?.text()).toMatch(/HTTP\/1.1 200[\s\S]*connection: close/i)
    grace.resolve()
    await drained
  })

  it('closes connections that are idle, silent or become idle', async () => {
    await using harness = await startHarness()
    const [idle, silent, busy] = await Promise.all([1, 2, 3].map(() => rawConnection(harness.port)))
    idle?.socket.write(GET)
    await idle?.until(/"etag"/)
    const h2 = connectHttp2(harness.baseUrl)
    await new Promise((resolve) => h2.once('remoteSettings', resolve))
    const body = `{"id":"${WIDGET_ID}"}`
    busy?.socket.write(
      `POST /widget/${WIDGET_ID}/wait HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer env\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await harness.events.waiting.promise
    const h2Closed = new Promise((resolve) => h2.once('close', resolve))
    const drained = harness.server.drain(DEADLINE_MS)
    await Promise.all([idle?.closed, silent?.closed, h2Closed])
    expect(busy?.text()).toBe('')
    harness.events.release.resolve()
    await busy?.until(/"etag"/)
    await busy?.closed
    await drained
  })

  it('ends streams before its deadline and says why', async () => {
    await using harness = await startHarness({ limits: { streamDrainMs: 30 } })
    const transport = createGrpcTransport({ baseUrl: harness.baseUrl })
    const watching = (async function* () {
      yield { count: 1, afterwards: 'wait' } as never
    })()
    const { message } = await transport.stream(serverStream('Watch'), undefined, undefined, AS_ENVIRONMENT, watching)
    const received = (async () => {
      for await (const _ of message);
    })()
    await harness.events.waiting.promise
    const drained = harness.server.drain(DEADLINE_MS)
    await expect(received).rejects.toMatchObject({ code: Code.Unavailable })
    await harness.events.streamClosed.promise
    await drained
  })

  it('cuts what is left at its deadline', async () => {
    await using harness = await startHarness()
    const call = http1(harness.baseUrl, `/widget/${WIDGET_ID}/wait`, { method: 'POST', headers: JSON_BODY, body: '{}' })
    const cut = expect(call).rejects.toThrow()
    await harness.events.waiting.promise
    await harness.server.drain(50)
    await cut
  })

  it('of a server that never listened ends at once', async () => {
    const harness = await startHarness()
    await harness[Symbol.asyncDispose]()
    await harness.server.drain(DEADLINE_MS)
  })
})
