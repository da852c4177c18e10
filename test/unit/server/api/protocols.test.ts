import { connect as connectHttp2 } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { credentials, makeGenericClientConstructor, type ServiceError, status } from '@grpc/grpc-js'
import { describe, expect, it } from 'vitest'
import { StatusSchema } from '../../../../gen/google/rpc/status_pb.ts'
import { message } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, http2, JSON_BODY } from './support/http.ts'

const RPC = '/widget.v1.WidgetService'

/** A message in its envelope. */
function envelope(payload: Uint8Array, flags = 0): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = flags
  prefix.writeUInt32BE(payload.length, 1)
  return Buffer.concat([prefix, payload])
}

const getRequest = () => toBinary(message('GetRequest'), create(message('GetRequest'), { id: WIDGET_ID }))

/** A gRPC call as it goes over the wire. */
async function rawGrpc(
  baseUrl: string,
  path: string,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
) {
  const session = connectHttp2(baseUrl)
  try {
    const stream = session.request({
      ':path': path,
      ':method': 'POST',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...AS_ENVIRONMENT,
      ...headers,
    })
    const head = new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve))
    const trailers = new Promise<Record<string, unknown>>((resolve) => stream.once('trailers', resolve))
    stream.end(body)
    return { head: await head, body: await buffer(stream), trailers: await trailers }
  } finally {
    session.close()
  }
}

describe('gRPC', () => {
  it('answers with one message between headers and trailers', async () => {
    await using harness = await startHarness()
    const { head, body, trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Get`, envelope(getRequest()))
    expect(head).toMatchObject({ ':status': 200, 'content-type': 'application/grpc' })
    expect(body.readUInt32BE(1)).toBe(body.length - 5)
    expect(trailers['grpc-status']).toBe('0')
  })

  it('rejects in trailers, with readable text and the details as google.rpc.Status', async () => {
    await using harness = await startHarness()
    const body = toBinary(message('FailRequest'), create(message('FailRequest'), { how: 'taken' }))
    const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Fail`, envelope(body))
    expect(trailers['grpc-status']).toBe('6')
    expect(trailers['grpc-message']).toBe('the name is taken: choose another')
    const details = Buffer.from(String(trailers['grpc-status-details-bin']), 'base64')
    expect(fromBinary(StatusSchema, details)).toMatchObject({ code: 6, details: [{}] })
  })

  it.each([
    ['the service', '/nothing.v1.Nothing/Get'],
    ['the method', `${RPC}/Nothing`],
  ])('answers UNIMPLEMENTED when it does not know %s', async (_, path) => {
    await using harness = await startHarness()
    const { trailers } = await rawGrpc(harness.baseUrl, path, envelope(getRequest()))
    expect(trailers['grpc-status']).toBe('12')
    const Client = makeGenericClientConstructor({}, 'x')
    const client = new Client(`127.0.0.1:${harness.port}`, credentials.createInsecure())
    const error = await new Promise<ServiceError | null>((resolve) => {
      client.makeUnaryRequest(
        path,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        Buffer.alloc(0),
        resolve,
      )
    })
    client.close()
    expect(error?.code).toBe(status.UNIMPLEMENTED)
  })

  it.each([
    ['a cut prefix', Buffer.from([0, 0])],
    ['a cut message', envelope(Buffer.from('{}')).subarray(0, 6)],
    ['unknown flags', envelope(Buffer.alloc(0), 0x40)],
    ['bytes that are no message', envelope(Buffer.from([0xff, 0xff, 0xff]))],
  ])('rejects %s', async (_, body) => {
    await using harness = await startHarness()
    const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Get`, body)
    expect([trailers['grpc-status'], trailers['grpc-message'] !== '']).toEqual(['3', true])
  })

  it('keeps its trailers small however much is wrong, and says how much that was', async () => {
    await using harness = await startHarness()
    const parts = Array.from({ length: 90 }, () => ({ name: '', count: -1 }))
    const desc = message('CreateRequest')
    const body = toBinary(desc, create(desc, { name: 'a', parts }))
    const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Create`, envelope(body))
    expect(Buffer.byteLength(JSON.stringify(trailers))).toBeLessThan(8_192)
    const details = Buffer.from(String(trailers['grpc-status-details-bin']), 'base64')
    expect(details.toString('latin1')).toMatch(/violations[^a-z]+100/)
  })

  it('repeats neither a key of any length nor one that is no text', async () => {
    await using harness = await startHarness()
    const headers = { 'content-type': 'application/grpc+json' }
    for (const key of ['x'.repeat(100_000), '\\ud800']) {
      const body = envelope(Buffer.from(`{"${key}":1}`))
      const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Create`, body, headers)
      expect(trailers['grpc-status']).toBe('3')
      expect(Buffer.byteLength(JSON.stringify(trailers))).toBeLessThan(8_192)
    }
  })

  const many = { name: 'a', attributes: { list: Array.from({ length: 50_001 }, () => null) } }
  const manyInProtobuf = toBinary(message('CreateRequest'), create(message('CreateRequest'), many))
  it.each([
    ['in protobuf', 'application/grpc', envelope(manyInProtobuf)],
    ['in protobuf, compressed', 'application/grpc', envelope(gzipSync(manyInProtobuf), 1)],
    ['in JSON', 'application/grpc+json', envelope(Buffer.from(JSON.stringify(many)))],
  ])('rejects more values than are decoded in one turn, and names the limit: %s', async (_, contentType, body) => {
    await using harness = await startHarness()
    const headers = { 'content-type': contentType, 'grpc-encoding': 'gzip' }
    const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Create`, body, headers)
    expect([trailers['grpc-status'], trailers['grpc-message']]).toEqual(['8', expect.stringContaining('50000 values')])
  })

  it('names the compressions it accepts', async () => {
    await using harness = await startHarness()
    const headers = { 'grpc-encoding': 'snappy' }
    const { head, trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Get`, envelope(getRequest(), 1), headers)
    expect(head['grpc-accept-encoding']).toBe('gzip,br,deflate,identity')
    expect(trailers['grpc-status']).not.toBe('0')
  })
})

/** Codes that gRPC prescribes for framing (statuscodes.md, compression.md), by name as Connect spells them. */
const FRAMING: readonly (readonly [
  what: string,
  body: Buffer,
  encoding: string | undefined,
  grpc: string,
  connect: string,
])[] = [
  ['no message', Buffer.alloc(0), undefined, '12', 'unimplemented'],
  ['two messages', Buffer.concat([envelope(getRequest()), envelope(getRequest())]), undefined, '12', 'unimplemented'],
  ['a compressed message without an encoding', envelope(gzipSync(getRequest()), 1), undefined, '13', 'internal'],
  ['a compressed message of encoding identity', envelope(gzipSync(getRequest()), 1), 'identity', '13', 'internal'],
  ['an unknown encoding', envelope(getRequest(), 1), 'snappy', '12', 'unimplemented'],
  ['an unknown encoding of a plain message', envelope(getRequest()), 'snappy', '12', 'unimplemented'],
]

describe('a framing that breaks the protocol', () => {
  it.each(FRAMING)('has the code that gRPC prescribes: %s', async (_, body, encoding, grpc) => {
    await using harness = await startHarness()
    const headers = encoding === undefined ? {} : { 'grpc-encoding': encoding }
    const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Get`, body, headers)
    expect(trailers['grpc-status']).toBe(grpc)
    const web = { ...AS_ENVIRONMENT, ...headers, 'content-type': 'application/grpc-web' }
    const answer = await http1(harness.baseUrl, `${RPC}/Get`, { method: 'POST', headers: web, body })
    expect(answer.text).toContain(`grpc-status: ${grpc}\r\n`)
    // The mistake is the client's: nothing of it is an error of this service.
    expect(harness.log.filter(({ level }) => level === 'error')).toEqual([])
  })

  it.each(FRAMING)(
    'has the code of the same name on a Connect stream: %s',
    async (_, body, encoding, _grpc, connect) => {
      await using harness = await startHarness()
      const headers = {
        ...AS_ENVIRONMENT,
        'content-type': 'application/connect+proto',
        ...(encoding === undefined ? {} : { 'connect-content-encoding': encoding }),
      }
      const answer = await http1(harness.baseUrl, `${RPC}/Watch`, { method: 'POST', headers, body })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining(`"code":"${connect}"`)])
    },
  )

  it('does not concern names of encodings in another case, or x-gzip', async () => {
    await using harness = await startHarness()
    for (const encoding of ['GZIP', 'x-gzip', 'X-Gzip']) {
      const body = envelope(gzipSync(getRequest()), 1)
      const { trailers } = await rawGrpc(harness.baseUrl, `${RPC}/Get`, body, { 'grpc-encoding': encoding })
      expect(trailers['grpc-status']).toBe('0')
    }
  })
})

describe('gRPC-Web', () => {
  it('carries its trailers as the last envelope', async () => {
    await using harness = await startHarness()
    const headers = { ...AS_ENVIRONMENT, 'content-type': 'application/grpc-web+proto' }
    const answer = await http1(harness.baseUrl, `${RPC}/Get`, { method: 'POST', headers, body: envelope(getRequest()) })
    expect(answer.headers.get('content-type')).toBe('application/grpc-web+proto')
    expect(answer.text).toMatch(/grpc-status: 0\r\n$/)
  })

  it('answers UNIMPLEMENTED in its own form', async () => {
    await using harness = await startHarness()
    const headers = { 'content-type': 'application/grpc-web' }
    const answer = await http1(harness.baseUrl, '/nothing.v1.Nothing/Get', {
      method: 'POST',
      headers,
      body: envelope(Buffer.alloc(0)),
    })
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('grpc-status: 12')])
  })
})

describe('Connect', () => {
  it('answers in plain HTTP, errors with their code as a word', async () => {
    await using harness = await startHarness()
    const call = (path: string, body: string) =>
      http2(harness.baseUrl, RPC + path, { method: 'POST', headers: JSON_BODY, body })
    const good = await call('/Get', `{"id":"${WIDGET_ID}"}`)
    expect([good.status, good.headers.get('content-type')]).toEqual([200, 'application/json'])
    const bad = await call('/Fail', '{"how":"sandbox"}')
    expect(bad.status).toBe(400)
    expect(bad.json).toMatchObject({
      code: 'failed_precondition',
      details: [{ type: 'google.rpc.ErrorInfo', debug: { reason: 'SANDBOX_ACCOUNT_READ_ONLY' } }],
    })
  })

  it.each(['text/plain', 'application/connect+json', 'application/json; charset=latin1', 'application/grpc-web-text'])(
    'refuses the content type %s on a unary path and lists the others',
    async (contentType) => {
      await using harness = await startHarness()
      const headers = { ...AS_ENVIRONMENT, 'content-type': contentType }
      const answer = await http1(harness.baseUrl, `${RPC}/Get`, { method: 'POST', headers, body: '{}' })
      expect(answer.status).toBe(415)
      expect(answer.headers.get('accept-post')).toContain('application/json')
      expect(answer.headers.get('accept-post')).not.toContain('connect+json')
    },
  )

  it.each([
    ['plain', (bytes: Uint8Array) => bytes, ''],
    ['compressed', (bytes: Uint8Array) => gzipSync(bytes), '&compression=gzip'],
  ])('takes a binary message by GET: %s', async (_, coded, compression) => {
    await using harness = await startHarness()
    const text = Buffer.from(coded(getRequest())).toString('base64url')
    const path = `${RPC}/Get?encoding=proto&base64=1&message=${text}${compression}`
    const { status, headers, text: body } = await http1(harness.baseUrl, path, { headers: AS_ENVIRONMENT })
    expect([status, headers.get('content-type')]).toEqual([200, 'application/proto'])
    expect(body).toContain(WIDGET_ID)
  })

  it('takes its content type with a charset', async () => {
    await using harness = await startHarness()
    const headers = { ...AS_ENVIRONMENT, 'content-type': 'application/json; charset=utf-8' }
    const body = `{"id":"${WIDGET_ID}"}`
    expect((await http1(harness.baseUrl, `${RPC}/Get`, { method: 'POST', headers, body })).status).toBe(200)
  })
})
