import { connect as connectHttp2 } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { ConnectError } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import { createClient, PROTOCOLS } from '../../../support/client.ts'
import { message, unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, http2, JSON_BODY, rawConnection } from './support/http.ts'
import { ALL_WIRES, connectOutcome, refusedOutcome } from './support/protocols.ts'

const RPC = '/widget.v1.WidgetService/Create'

const head = (headers: readonly string[]) =>
  [`POST ${RPC} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers, '', ''].join('\r\n')

/** Opens a request over HTTP/2, sends a part of its body and leaves it there. */
function stalledHttp2(baseUrl: string, headers: Readonly<Record<string, string>>, part: Uint8Array) {
  const session = connectHttp2(baseUrl)
  const stream = session.request({ ':path': RPC, ':method': 'POST', ...headers })
  stream.on('error', () => {})
  stream.write(part)
  const closed = new Promise<number>((resolve) => stream.once('close', () => resolve(stream.rstCode ?? 0)))
  const response = new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve))
  const trailers = new Promise<Record<string, unknown>>((resolve) => stream.once('trailers', resolve))
  stream.resume()
  return { session, closed, response, trailers }
}

describe('before the body is read', () => {
  it('a missing token is rejected over HTTP/1.1, whether the body comes or not', async () => {
    await using harness = await startHarness({ limits: { drainTimeoutMs: 30 } })
    const client = await rawConnection(harness.port)
    client.socket.write(`${head(['Content-Length: 100'])}{"na`)
    expect(await client.until(/TOKEN_MISSING/)).toContain('401 Unauthorized')
    await client.closed
  })

  it('a missing token is rejected over HTTP/2, and the stream ended', async () => {
    await using harness = await startHarness({ limits: { drainTimeoutMs: 30 } })
    const call = stalledHttp2(harness.baseUrl, { 'content-type': 'application/json' }, Buffer.from('{"na'))
    expect((await call.response)[':status']).toBe(401)
    await call.closed
    call.session.close()
  })

  it('a missing token is rejected over gRPC', async () => {
    await using harness = await startHarness({ limits: { drainTimeoutMs: 30 } })
    const call = stalledHttp2(harness.baseUrl, { 'content-type': 'application/grpc' }, Buffer.from([0, 0]))
    expect((await call.trailers)['grpc-status']).toBe('16')
    await call.closed
    call.session.close()
  })

  it('a client that waits for "100 Continue" gets of the rejection instead', async () => {
    await using harness = await startHarness({ limits: { drainTimeoutMs: 30 } })
    const client = await rawConnection(harness.port)
    client.socket.write(head(['Content-Length: 12', 'Expect: 100-continue']))
    expect(await client.until(/TOKEN_MISSING/)).not.toContain('100 Continue')
  })

  it('a client that waits for "100 Continue" gets to go on once it is admitted', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    client.socket.write(head(['Content-Length: 12', 'Expect: 100-continue', 'Authorization: Bearer env']))
    await client.until(/100 Continue/)
    client.socket.write('{"name":"a"}')
    expect(await client.until(/"etag"/)).toContain('200 OK')
  })

  it('a connection stays usable after a rejection whose body did arrive', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    client.socket.write(`${head(['Content-Length: 12'])}{"name":"a"}`)
    await client.until(/TOKEN_MISSING/)
    client.socket.write(`${head(['Content-Length: 12', 'Authorization: Bearer env'])}{"name":"a"}`)
    expect(await client.until(/"etag"/)).toContain('200 OK')
  })
})

describe('a body that does not arrive', () => {
  it('is given up over HTTP/1.1', async () => {
    await using harness = await startHarness({ limits: { bodyIdleMs: 30, drainTimeoutMs: 30 } })
    const client = await rawConnection(harness.port)
    client.socket.write(`${head(['Content-Length: 100', 'Authorization: Bearer env'])}{"na`)
    expect(await client.until(/REQUEST_STALLED/)).toContain('408')
    await client.closed
  })

  it('is given up over gRPC', async () => {
    await using harness = await startHarness({ limits: { bodyIdleMs: 30, drainTimeoutMs: 30 } })
    const headers = { 'content-type': 'application/grpc', ...AS_ENVIRONMENT }
    const call = stalledHttp2(harness.baseUrl, headers, Buffer.from([0, 0, 0]))
    expect((await call.trailers)['grpc-status']).toBe('4')
    await call.closed
    call.session.close()
  })

  it('is given up although it drips', async () => {
    await using harness = await startHarness({ limits: { bodyIdleMs: 10_000, bodyTotalMs: 60, drainTimeoutMs: 30 } })
    const client = await rawConnection(harness.port)
    client.socket.write(head(['Content-Length: 100000', 'Authorization: Bearer env']))
    const drip = setInterval(() => client.socket.write(' '), 5)
    expect(await client.until(/REQUEST_STALLED/)).toContain('did not arrive in time')
    await client.closed
    clearInterval(drip)
  })

  it('ends with the call when the client goes away', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    client.socket.write(`${head(['Content-Length: 100', 'Authorization: Bearer slow'])}{"na`)
    harness.admitSlow()
    client.socket.write('m')
    client.socket.destroy()
    await expect.poll(() => harness.observations[0]?.outcome).toBe('CANCELLED')
  })
})

describe('the size of a request', () => {
  const LIMIT = 1_000
  /** A `CreateRequest` whose protobuf encoding has exactly `bytes` bytes; it is too long a name, which is found later. */
  const sized = (bytes: number) => {
    const overhead = 3
    return { name: 'x'.repeat(bytes - overhead) }
  }

  it.each(ALL_WIRES.filter(({ name }) => !/JSON|REST|gzip/.test(name)))(
    'may be the limit on $name, but no more',
    async (wire) => {
      await using harness = await startHarness({ limits: { requestBytesMax: LIMIT } })
      const client = wire.connect(harness.baseUrl)
      expect(toBinary(message('CreateRequest'), create(message('CreateRequest'), sized(LIMIT)))).toHaveLength(LIMIT)
      const atLimit = await client.send(unary('Create'), sized(LIMIT), AS_ENVIRONMENT)
      const above = await client.send(unary('Create'), sized(LIMIT + 1), AS_ENVIRONMENT)
      client.close()
      expect(atLimit).toMatchObject({ error: { violations: [{ rule: 'string.max_len' }] } })
      expect(above).toMatchObject({ error: { code: 'RESOURCE_EXHAUSTED', reason: 'REQUEST_TOO_LARGE' } })
    },
  )

  it.each(PROTOCOLS)('of 5 MiB is rejected over %s with the default limit', async (wire) => {
    await using harness = await startHarness()
    const client = createClient(wire, harness.baseUrl, { token: 'env' })
    const rejection = await client.callError(unary('Create'), { name: 'x'.repeat(5 * 1024 * 1024) })
    client.close()
    expect(rejection).toMatchObject({ code: 'RESOURCE_EXHAUSTED', reason: 'REQUEST_TOO_LARGE' })
    if (wire === 'rest') expect(rejection.httpStatus).toBe(413)
  })

  it('is rejected by its announcement alone', async () => {
    await using harness = await startHarness({ limits: { requestBytesMax: LIMIT, drainTimeoutMs: 30 } })
    const client = await rawConnection(harness.port)
    client.socket.write(head(['Content-Length: 1000000', 'Authorization: Bearer env']))
    expect(await client.until(/REQUEST_TOO_LARGE/)).toContain('429')
  })
})

describe('a compressed request', () => {
  const big = { name: 'a', tags: ['x'.repeat(100_000)] }

  it.each([
    ['Connect', '/widget.v1.WidgetService/Create', 'gzip'],
    ['REST', '/widget', 'gzip'],
    ['Connect', '/widget.v1.WidgetService/Create', 'GZIP'],
    ['REST', '/widget', 'x-gzip'],
    ['REST', '/widget', 'X-GZip'],
  ])('is read over %s at %s with the coding %s', async (_, path, coding) => {
    await using harness = await startHarness()
    const headers = { ...JSON_BODY, 'content-encoding': coding }
    const body = gzipSync('{"name":"a"}')
    const answer = await http1(harness.baseUrl, path, { method: 'POST', headers, body })
    expect(answer.json).toMatchObject({ request: { name: 'a' } })
  })

  it.each(['/widget.v1.WidgetService/Create', '/widget'])(
    'that inflates beyond the limit is refused at %s',
    async (path) => {
      await using harness = await startHarness({ limits: { requestBytesMax: 10_000 } })
      const headers = { ...JSON_BODY, 'content-encoding': 'gzip' }
      const body = gzipSync(JSON.stringify(big))
      const answer = await http1(harness.baseUrl, path, { method: 'POST', headers, body })
      expect(body.length).toBeLessThan(1_000)
      expect(answer.text).toContain('REQUEST_TOO_LARGE')
    },
  )

  it('that inflates beyond the limit is rejected over gRPC', async () => {
    await using harness = await startHarness({ limits: { requestBytesMax: 10_000 } })
    const gzip = {
      name: 'gzip',
      compress: async (bytes: Uint8Array) => gzipSync(bytes),
      decompress: async () => Buffer.alloc(0),
    }
    const transport = createGrpcTransport({ baseUrl: harness.baseUrl, sendCompression: gzip, compressMinBytes: 0 })
    const call = transport.unary(unary('Create'), undefined, 5_000, AS_ENVIRONMENT, big as never)
    const outcome = await call.then(
      () => undefined,
      (error) => refusedOutcome(ConnectError.from(error)),
    )
    expect(outcome).toMatchObject({ error: { reason: 'REQUEST_TOO_LARGE' } })
  })

  it.each([
    ['in an unknown encoding', 'snappy', Buffer.from('{}'), 'COMPRESSION_UNSUPPORTED'],
    ['that is not what it says', 'gzip', Buffer.from('{}'), 'MALFORMED_BODY'],
    ['in an encoding with a name of every object', 'constructor', Buffer.from('{}'), 'COMPRESSION_UNSUPPORTED'],
  ])('%s is rejected', async (_, encoding, body, reason) => {
    await using harness = await startHarness()
    const headers = { ...JSON_BODY, 'content-encoding': encoding }
    const outcome = connectOutcome(await http1(harness.baseUrl, RPC, { method: 'POST', headers, body }))
    expect(outcome).toMatchObject({ error: { reason } })
  })
})

describe('Connect’s GET', () => {
  const path = '/widget.v1.WidgetService/Get'
  const query = (pairs: Record<string, string>) => `${path}?${new URLSearchParams({ connect: 'v1', ...pairs })}`
  const binary = () => Buffer.from(toBinary(message('GetRequest'), create(message('GetRequest'), { id: WIDGET_ID })))

  it.each([
    ['JSON', () => query({ encoding: 'json', message: JSON.stringify({ id: WIDGET_ID }) })],
    [
      'base64',
      () =>
        query({ encoding: 'json', base64: '1', message: Buffer.from(`{"id":"${WIDGET_ID}"}`).toString('base64url') }),
    ],
  ])('carries its message as %s', async (_, target) => {
    await using harness = await startHarness()
    const answer = await http2(harness.baseUrl, target())
    expect(answer.json).toMatchObject({ id: WIDGET_ID })
  })

  it('carries a binary and compressed message, as connect-node sends it', async () => {
    await using harness = await startHarness()
    const transport = createConnectTransport({
      baseUrl: harness.baseUrl,
      httpVersion: '1.1',
      useHttpGet: true,
      useBinaryFormat: true,
    })
    const { message: answer } = await transport.unary(unary('Get'), undefined, 5_000, AS_ENVIRONMENT, {
      id: WIDGET_ID,
    } as never)
    expect(answer).toMatchObject({ id: WIDGET_ID })
    const compressed = gzipSync(binary()).toString('base64url')
    const target = query({ encoding: 'proto', base64: '1', compression: 'gzip', message: compressed })
    expect((await http1(harness.baseUrl, target)).status).toBe(200)
  })

  it('answers HEAD with the head of the same answer', async () => {
    await using harness = await startHarness()
    const target = query({ encoding: 'json', message: JSON.stringify({ id: WIDGET_ID }) })
    for (const http of [http1, http2]) {
      const [get, head] = [await http(harness.baseUrl, target), await http(harness.baseUrl, target, { method: 'HEAD' })]
      expect([head.status, head.text]).toEqual([200, ''])
      expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'))
    }
    expect((await http1(harness.baseUrl, RPC, { method: 'HEAD' })).status).toBe(405)
  })

  it('is rejected like any other call', async () => {
    await using harness = await startHarness()
    const outcome = connectOutcome(await http1(harness.baseUrl, query({ encoding: 'json', message: '{"id":"x"}' })))
    expect(outcome).toMatchObject({ error: { violations: [{ field: 'id', rule: 'string.uuid' }] } })
    const undecodable = connectOutcome(await http1(harness.baseUrl, `${path}?encoding=json&message=%ff`))
    expect(undecodable).toMatchObject({ error: { violations: [{ field: 'message', rule: 'percent_encoding' }] } })
    const none = connectOutcome(await http1(harness.baseUrl, path))
    expect(none).toMatchObject({ error: { reason: 'MALFORMED_BODY' } })
  })
})
