import { connect as connectHttp2 } from 'node:http2'
import { get as httpsGet } from 'node:https'
import { text } from 'node:stream/consumers'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import { unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, http2, rawConnection } from './support/http.ts'
import { TLS_KEYS } from './support/tls-keys.ts'

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])

describe('the plaintext port', () => {
  it('speaks HTTP/1.1 and HTTP/2', async () => {
    await using harness = await startHarness()
    expect((await http1(harness.baseUrl, `/widget/${WIDGET_ID}`)).status).toBe(200)
    expect((await http2(harness.baseUrl, `/widget/${WIDGET_ID}`)).status).toBe(200)
  })

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'PROPFIND'])('understands %s when it arrives byte by byte', async (verb) => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    client.socket.setNoDelay(true)
    const request = `${verb} /nothing HTTP/1.1\r\nHost: x\r\n\r\n`
    for (const byte of request) {
      client.socket.write(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await client.until(/ROUTE_NOT_FOUND/)).toMatch(/^HTTP\/1\.1 404/)
  })

  it('understands the preface of HTTP/2 when it arrives byte by byte', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    client.socket.setNoDelay(true)
    for (const byte of PREFACE) {
      client.socket.write(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
    client.socket.write(SETTINGS)
    // The first frame of the server is SETTINGS, type 4.
    await expect.poll(() => client.text().charCodeAt(3)).toBe(4)
  })

  it('ignores an offer to upgrade', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk'
    client.socket.write(`GET /nothing HTTP/1.1\r\nHost: x\r\n${upgrade}\r\n\r\n`)
    expect(await client.until(/ROUTE_NOT_FOUND/)).toMatch(/^HTTP\/1\.1 404/)
  })

  it('closes a connection that stays silent, or halfway through its first words', async () => {
    await using harness = await startHarness({ limits: { protocolDetectionMs: 30 } })
    const [silent, halfway] = await Promise.all([rawConnection(harness.port), rawConnection(harness.port)])
    halfway?.socket.write('PRI * HT')
    await Promise.all([silent?.closed, halfway?.closed])
  })

  it('closes a connection whose headers do not end', async () => {
    await using harness = await startHarness({ limits: { headersMs: 30 } })
    const client = await rawConnection(harness.port)
    client.socket.write('GET / HTTP/1.1\r\nHost: x\r\n')
    expect(await client.until(/408/)).toContain('408 Request Timeout')
    await client.closed
  })

  it('rejects headers beyond the limit', async () => {
    await using harness = await startHarness({ limits: { headerBytesMax: 8_000 } })
    const client = await rawConnection(harness.port)
    client.socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(9_000)}\r\n\r\n`)
    await client.until(/431/)
    const session = connectHttp2(harness.baseUrl)
    // The server's limits hold once the client has acknowledged them.
    await new Promise((resolve) => session.once('remoteSettings', resolve))
    await new Promise((resolve) => session.ping(() => resolve(undefined)))
    const stream = session.request({ ':path': '/', x: 'x'.repeat(9_000) })
    const refused = new Promise((resolve) => stream.once('error', resolve))
    expect(await refused).toBeInstanceOf(Error)
    session.destroy()
  })

  it('bounds the concurrent streams of a connection', async () => {
    await using harness = await startHarness({ limits: { streamsPerConnectionMax: 7 } })
    const session = connectHttp2(harness.baseUrl)
    const settings = await new Promise<{ maxConcurrentStreams?: number }>((resolve) => {
      session.once('remoteSettings', resolve)
    })
    session.close()
    expect(settings.maxConcurrentStreams).toBe(7)
  })

  it('sends an idle HTTP/2 connection away', async () => {
    await using harness = await startHarness({ limits: { sessionIdleMs: 30 } })
    const session = connectHttp2(harness.baseUrl)
    await new Promise((resolve) => session.once('close', resolve))
  })

  it('survives what is no HTTP', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    client.socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]))
    client.socket.write('\r\n\r\n')
    await client.closed
    expect((await http1(harness.baseUrl, `/widget/${WIDGET_ID}`)).status).toBe(200)
  })
})

describe('with TLS', () => {
  it('both versions share the port, agreed on by ALPN', async () => {
    await using harness = await startHarness({ tls: TLS_KEYS })
    const ca = TLS_KEYS.cert
    const overHttp1 = await new Promise<string>((resolve, reject) => {
      const options = { ca, headers: AS_ENVIRONMENT, ALPNProtocols: ['http/1.1'], agent: false as const }
      httpsGet(`${harness.baseUrl}/widget/${WIDGET_ID}`, options, (response) => resolve(text(response))).once(
        'error',
        reject,
      )
    })
    expect(JSON.parse(overHttp1)).toMatchObject({ id: WIDGET_ID })
    const transport = createGrpcTransport({ baseUrl: harness.baseUrl, nodeOptions: { ca } })
    const { message } = await transport.unary(unary('Get'), undefined, 5_000, AS_ENVIRONMENT, {
      id: WIDGET_ID,
    } as never)
    expect(message).toMatchObject({ id: WIDGET_ID })
  })

  it('a client that does not shake hands is sent away', async () => {
    await using harness = await startHarness({ tls: TLS_KEYS, limits: { protocolDetectionMs: 30 } })
    const client = await rawConnection(harness.port)
    await client.closed
  })
})

it('a port that is taken is an error of listen', async () => {
  await using first = await startHarness()
  const second = await startHarness()
  await second[Symbol.asyncDispose]()
  await expect(second.server.listen('127.0.0.1', first.port)).rejects.toThrow('EADDRINUSE')
})
