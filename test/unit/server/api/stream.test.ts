import { connect as connectHttp2 } from 'node:http2'
import { create, type DescMessage, type Message, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { serverStream, WidgetService } from './support/contract.ts'
import { type Harness, startHarness } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, rawConnection } from './support/http.ts'
import { refusedOutcome } from './support/protocols.ts'

/** A call that goes on for this long hangs. */
const HANG_MS = 60_000

const STREAM_WIRES: readonly (readonly [name: string, createTransport: (baseUrl: string) => Transport])[] = [
  ['gRPC', (baseUrl) => createGrpcTransport({ baseUrl })],
  ['gRPC with JSON', (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false })],
  ['gRPC-Web on HTTP/1.1', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  ['gRPC-Web on HTTP/2', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '2' })],
  [
    'Connect, binary, HTTP/2',
    (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: true }),
  ],
  ['Connect, JSON, HTTP/1.1', (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
]

interface Watched {
  readonly names: readonly string[]
  readonly error: ConnectError | undefined
}

/** Watches until the stream ends or `stopAfter` messages came. */
async function watch(
  transport: Transport,
  request: JsonObject,
  { headers = AS_ENVIRONMENT, timeoutMs = 5_000, stopAfter = Number.POSITIVE_INFINITY } = {},
): Promise<Watched> {
  const names: string[] = []
  const aborter = new AbortController()
  try {
    const { message } = await transport.stream(
      serverStream('Watch'),
      aborter.signal,
      timeoutMs,
      headers,
      only(request as never),
    )
    for await (const widget of message) {
      names.push(String(Reflect.get(widget, 'name')))
      if (names.length === stopAfter) break
    }
    if (names.length === stopAfter) aborter.abort()
    return { names, error: undefined }
  } catch (error) {
    return { names, error: ConnectError.from(error) }
  }
}

async function* only<Item>(item: Item): AsyncGenerator<Item> {
  yield item
}

describe.each(STREAM_WIRES)('a stream over %s', (_, createTransport) => {
  const start = async (options: Parameters<typeof startHarness>[0] = {}): Promise<[Harness, Transport]> => {
    const harness = await startHarness(options)
    return [harness, createTransport(harness.baseUrl)]
  }

  it('carries its messages in order and ends well', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    expect(await watch(transport, { count: 3 })).toEqual({ names: ['0', '1', '2'], error: undefined })
    expect(await watch(transport, { count: 0 })).toEqual({ names: [], error: undefined })
    await expect.poll(() => harness.observations.length).toBe(2)
    expect(harness.observations[0]?.outcome).toBe('OK')
  })

  it('asks proxies not to buffer it', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    const request = only({ count: 1 } as never)
    const { header, message } = await transport.stream(serverStream('Watch'), undefined, 5_000, AS_ENVIRONMENT, request)
    for await (const _ of message);
    expect(header.get('x-accel-buffering')).toBe('no')
  })

  it('is rejected before it begins, like any call', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    const denied = await watch(transport, { count: 1 }, { headers: { authorization: 'Bearer who' } })
    expect(denied.error?.code).toBe(Code.Unauthenticated)
    const invalid = await watch(transport, { count: -1 })
    expect(invalid.error && refusedOutcome(invalid.error)).toMatchObject({
      error: { reason: 'INVALID_FIELD', violations: [{ field: 'count', rule: 'int32.gte' }] },
    })
  })

  it('can fail in the middle, with details', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    const { names, error } = await watch(transport, { count: 2, afterwards: 'busy' })
    expect(names).toEqual(['0', '1'])
    expect(error && refusedOutcome(error)).toMatchObject({
      error: { code: 'RESOURCE_EXHAUSTED', reason: 'GROUP_FULL', retryAfterSeconds: 2 },
    })
  })

  it('ends at the deadline of its client', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    const { names, error } = await watch(transport, { count: 1, afterwards: 'wait' }, { timeoutMs: 400 })
    expect(names).toEqual(['0'])
    expect(error?.code).toBe(Code.DeadlineExceeded)
    await harness.events.streamClosed.promise
  })

  it('ends at the deadline although its handler never stops', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    const { error } = await watch(transport, { count: 2_000_000_000 }, { timeoutMs: 400 })
    expect(error?.code).toBe(Code.DeadlineExceeded)
    await harness.events.streamClosed.promise
  })

  it('closes its handler when the client goes away', async () => {
    const [harness, transport] = await start()
    await using _ = harness
    expect((await watch(transport, { count: 5, afterwards: 'wait' }, { stopAfter: 2 })).names).toEqual(['0', '1'])
    await harness.events.streamClosed.promise
  })
})

describe('a slow reader', () => {
  it('holds the handler back, and is cut off', async () => {
    await using harness = await startHarness({ limits: { writeTimeoutMs: 150 } })
    const client = await rawConnection(harness.port)
    const message = Buffer.from('{"count":100000,"padding":10000}')
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(message.length, 1)
    client.socket.pause()
    client.socket.write(
      [
        'POST /widget.v1.WidgetService/Watch HTTP/1.1',
        'Host: x',
        'Authorization: Bearer env',
        'Content-Type: application/connect+json',
        `Content-Length: ${message.length + 5}\r\n\r\n`,
      ].join('\r\n'),
    )
    client.socket.write(Buffer.concat([prefix, message]))
    await harness.events.streamClosed.promise
    expect(harness.events.streamed).toBeLessThan(10_000)
    await expect.poll(() => harness.observations[0]?.outcome).toBe('CANCELLED')
    client.socket.resume()
    await client.closed
  })

  const asJson = Buffer.from('{"count":100000,"padding":10000}')
  const watchRequest = serverStream('Watch').input
  const asProtobuf = Buffer.from(toBinary(watchRequest, create(watchRequest, { count: 100_000, padding: 10_000 })))
  it.each([
    ['application/connect+json', asJson],
    ['application/connect+proto', asProtobuf],
    ['application/grpc', asProtobuf],
    ['application/grpc-web', asProtobuf],
  ])('is cut off over HTTP/2 too: %s', async (contentType, message) => {
    await using harness = await startHarness({ limits: { writeTimeoutMs: 150 } })
    const session = connectHttp2(harness.baseUrl)
    const stream = session.request({
      ':path': '/widget.v1.WidgetService/Watch',
      ':method': 'POST',
      'content-type': contentType,
      ...AS_ENVIRONMENT,
    })
    stream.on('error', () => {})
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(message.length, 1)
    stream.end(Buffer.concat([prefix, message]))
    await harness.events.streamClosed.promise
    expect(harness.events.streamed).toBeLessThan(10_000)
    session.destroy()
  })
})

describe('Connect JSON on a stream', () => {
  const call = async (harness: Harness, body: string, contentType = 'application/connect+json') => {
    const message = Buffer.from(body)
    const envelope = Buffer.alloc(5 + message.length)
    envelope.writeUInt32BE(message.length, 1)
    envelope.set(message, 5)
    const headers = { ...AS_ENVIRONMENT, 'content-type': contentType }
    return http1(harness.baseUrl, '/widget.v1.WidgetService/Watch', { method: 'POST', headers, body: envelope })
  }

  it('writes times with milliseconds, like everywhere', async () => {
    await using harness = await startHarness()
    const answer = await call(harness, '{"count":1}')
    expect(answer.text).toContain('"created_at":"2027-01-15T08:00:00.000Z"')
  })

  it('reports every misfit', async () => {
    await using harness = await startHarness()
    const answer = await call(harness, '{"cuont":1,"padding":"x"}')
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('did you mean count?')
    expect(answer.text).toContain('"field":"padding"')
  })

  it('is not confused with the unary content type', async () => {
    await using harness = await startHarness()
    expect((await call(harness, '{"count":1}', 'application/json')).status).toBe(415)
  })
})

describe('a stream in both directions', () => {
  const method = WidgetService.methods.find(({ name }) => name === 'Chat')
  if (method === undefined) throw new Error('no Chat')

  async function chat(
    baseUrl: string,
    requests: readonly JsonObject[],
    headers: Record<string, string> = AS_ENVIRONMENT,
  ) {
    const transport = createGrpcTransport({ baseUrl })
    const answers: Message[] = []
    try {
      const stream = await transport.stream<DescMessage, DescMessage>(
        method as never,
        undefined,
        HANG_MS,
        headers,
        (async function* () {
          for (const request of requests) yield request as never
        })(),
      )
      for await (const answer of stream.message) answers.push(answer)
      return { answers: answers.length, error: undefined, header: stream.header }
    } catch (error) {
      return { answers: answers.length, error: refusedOutcome(ConnectError.from(error)), header: undefined }
    }
  }

  it('answers each message and carries the request id', async () => {
    await using harness = await startHarness()
    const headers = { ...AS_ENVIRONMENT, 'x-request-id': 'chat-1' }
    const { answers, header, error } = await chat(harness.baseUrl, [{ count: 1 }, { count: 2 }], headers)
    expect([answers, error, header?.get('x-request-id')]).toEqual([2, undefined, 'chat-1'])
    expect(header?.get('widget-chat')).toBe('open')
  })

  it('takes headers of the handler until its first message, also when there is none', async () => {
    await using harness = await startHarness()
    const { header } = await chat(harness.baseUrl, [])
    expect(header?.get('widget-chat')).toBe('ended')
  })

  it('is authenticated like every call', async () => {
    await using harness = await startHarness()
    const { error } = await chat(harness.baseUrl, [{ count: 1 }], {})
    expect(error).toMatchObject({ error: { code: 'UNAUTHENTICATED', reason: 'TOKEN_MISSING' } })
  })

  it('has each of its messages validated', async () => {
    await using harness = await startHarness()
    const { answers, error } = await chat(harness.baseUrl, [{ count: 1 }, { count: -1 }])
    expect(answers).toBe(1)
    expect(error).toMatchObject({ error: { reason: 'INVALID_FIELD', violations: [{ field: 'count' }] } })
  })
})
