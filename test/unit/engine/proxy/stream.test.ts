import { once } from 'node:events'
import { Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import type {
  AccountReporter,
  CallLimiter,
  CredentialRefresher,
  StreamedResponse,
} from '../../../../src/engine/proxy/index.ts'
import type { StreamOutcome } from '../../../../src/engine/proxy/outcome.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedAnswer } from '../../../support/upstream.ts'
import { zeros } from '../../../support/zero-stream.ts'
import { startRawUpstream } from '../../foundation/egress/upstream.ts'
import { failureOf, on, startEngine } from './engine.ts'

const journal: string[] = []
const accountPort: CredentialRefresher & AccountReporter = {
  refresh: async (access) => {
    journal.push('renew')
    return { ...access, credentials: { api_key: 'new' } }
  },
  report: async (_access, { kind }) => {
    journal.push(kind)
  },
  updateContext: async () => {},
}
const callLimiter: CallLimiter = {
  acquire: async () => {
    journal.push('acquire')
    return {
      kind: 'granted',
      release: async () => {
        journal.push('release')
      },
    }
  },
  observe: () => {},
}
const engine = await startEngine({ credentialRefresher: accountPort, accountReporter: accountPort, callLimiter })
const kept = () => journal.filter((entry) => entry !== 'acquire' && entry !== 'release')

beforeEach(() => {
  journal.length = 0
})

const MEGABYTE = 1_000_000
const FILE = { kind: 'path', verb: 'GET', path: '/file' } as const
const UPLOAD = { kind: 'path', verb: 'PUT', path: '/file' } as const
const JSON_TYPE = { 'content-type': 'application/json' }
const SLACK_LIKE = { error_expression: 'body.ok = false ? {"status": 422, "message": body.error}' }

function download(settings: JsonObject, answer: ScriptedAnswer): Promise<StreamOutcome> {
  engine.upstream.script({ request: 'GET /file', answer })
  return engine.stream(settings, { target: FILE, limits: { attemptsMax: 1 } })
}

/** The answer of a stream and its bytes; fails when it is something else. */
async function bytesOf(outcome: StreamOutcome): Promise<{ readonly answer: StreamedResponse; readonly bytes: Buffer }> {
  if (outcome.kind !== 'stream') throw new Error(`the outcome is ${outcome.kind}`)
  return { answer: outcome, bytes: Buffer.concat(await outcome.body.toArray()) }
}

describe('a response is streamed', () => {
  test('with the very bytes, without what speaks about the connection', async () => {
    const sent = gzipSync('content')
    const headers = {
      'content-type': 'text/plain',
      'content-encoding': 'gzip',
      connection: 'close, x-hop',
      'x-hop': '1',
    }
    const { answer, bytes } = await bytesOf(await download({}, { bytes: sent, headers }))
    expect(bytes).toEqual(sent)
    expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' } })
    for (const name of ['connection', 'x-hop', 'transfer-encoding']) expect(answer.headers).not.toHaveProperty(name)
  })

  test.each([
    ['identity', {}],
    ['br', { 'Accept-Encoding': 'br' }],
  ])('in an encoding that the caller can read: %s', async (encoding, headers) => {
    engine.upstream.script({ request: 'GET /file', headers: { 'accept-encoding': encoding }, answer: { text: 'x' } })
    await bytesOf(await engine.stream({}, { target: FILE, headers }))
  })

  test('before it is there, when nothing in it decides', async () => {
    await using upstream = await startRawUpstream((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 9\r\n\r\na,b')
    })
    const outcome = await engine.stream({ ...SLACK_LIKE, base_url: upstream.origin }, { target: FILE })
    expect(outcome.kind).toBe('stream')
    if (outcome.kind === 'stream') outcome.body.destroy()
  })

  test.each([
    ['JSON that an expression has looked at', { text: ' {"ok" : true}\n', headers: JSON_TYPE }],
    ['JSON that is encoded', { bytes: gzipSync('{"ok":true}'), headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } }],
    ['JSON too long for an error', { text: `{"ok":false,"x":"${'x'.repeat(3 * MEGABYTE)}"}`, headers: JSON_TYPE }],
    ['nothing', { headers: JSON_TYPE }],
  ])('unchanged: %s', async (_what, answer: ScriptedAnswer) => {
    const { bytes } = await bytesOf(await download(SLACK_LIKE, answer))
    expect(bytes.equals(Buffer.from(answer.bytes ?? answer.text ?? ''))).toBe(true)
  })

  test('after a redirect', async () => {
    engine.upstream.script(
      { request: 'GET /file', answer: { status: 302, headers: { location: '/elsewhere' } } },
      { request: 'GET /elsewhere', answer: { text: 'here' } },
    )
    expect((await bytesOf(await engine.stream({}, { target: FILE }))).bytes.toString()).toBe('here')
  })

  test('as another one where the definition makes a success of an error', async () => {
    const settings = { error_expression: 'status = 404 ? {"status": 200, "result": {"items": []}}' }
    const { answer, bytes } = await bytesOf(await download(settings, { status: 404, text: 'no such thing' }))
    expect(answer).toMatchObject({ status: 200, headers: JSON_TYPE })
    expect(bytes.toString()).toBe('{"items":[]}')
  })

  test('with what the upstream says about its limit', async () => {
    const rate_limit = { rate_limit_header_expression: '{"remaining": headers."x-left"}' }
    const { answer } = await bytesOf(await download({ rate_limit }, { text: 'x', headers: { 'x-left': '3' } }))
    expect(answer.rateLimit).toEqual({ limit: undefined, remaining: '3', reset: undefined })
  })
})

describe('what is no success is an outcome of its own', () => {
  const longError = { status: 500, text: 'x'.repeat(3 * MEGABYTE) }
  const encoded = {
    status: 404,
    bytes: gzipSync('{"message":"gone"}'),
    headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
  }

  test.each<[string, JsonObject, ScriptedAnswer, object]>([
    ['429', {}, { status: 429, headers: { 'retry-after': '7' } }, { kind: 'rate_limited', retryAfterSeconds: 7 }],
    [
      'a limit that an expression finds',
      { rate_limit: { is_rate_limited: 'body.code = "slow"' } },
      { json: { code: 'slow' } },
      { kind: 'rate_limited', limitedBy: 'upstream' },
    ],
    ['404', {}, { status: 404, json: { message: 'gone' } }, { status: 404, message: 'gone' }],
    ['404, encoded', {}, encoded, { status: 404, message: 'gone' }],
    ['an error in a success', SLACK_LIKE, { json: { ok: false, error: 'no' } }, { status: 422, message: 'no' }],
    ['an endless error', {}, longError, { status: 500, message: 'the upstream answered 500' }],
  ])('%s', async (_what, settings, answer, expected) => {
    expect(await download(settings, answer)).toMatchObject({ kind: 'upstream_error', ...expected })
  })

  describe('unless the error expression finds none', () => {
    const silent = { error_expression: 'body.fault' }
    const account = { credentials: { api_key: 'k-123' } }

    test.each<[string, ScriptedAnswer, string]>([
      ['404', { status: 404, json: { message: 'gone', n: 1.1 } }, '{"message":"gone","n":1.1}'],
      ['404, encoded', encoded, '{"message":"gone"}'],
      ['text', { status: 400, text: '<p>no</p>' }, '<p>no</p>'],
      ['an endless error', { status: 418, text: 'x'.repeat(3 * MEGABYTE) }, 'x'.repeat(3 * MEGABYTE)],
      ['an error that quotes the credential', { status: 403, json: { key: 'k-123' } }, '{"key":"***"}'],
    ])('%s', async (_what, answer, expected) => {
      engine.upstream.script({ request: 'GET /file', answer })
      const { answer: head, bytes } = await bytesOf(await engine.stream(silent, { target: FILE }, account))
      const isEncoded = head.headers['content-encoding'] === 'gzip'
      expect([head.status, (isEncoded ? gunzipSync(bytes) : bytes).toString()]).toEqual([answer.status, expected])
    })

    test('once the status has been retried', async () => {
      engine.upstream.script(
        { request: 'GET /file', answer: { status: 503, text: 'first' } },
        { request: 'GET /file', answer: { status: 404, text: 'second' } },
      )
      const { answer, bytes } = await bytesOf(await engine.stream(silent, { target: FILE }, account))
      expect([answer.status, bytes.toString()]).toEqual([404, 'second'])
    })
  })

  test('and is repeated like any other call', async () => {
    engine.upstream.script(
      { request: 'GET /file', answer: { status: 503 } },
      { request: 'GET /file', answer: { text: 'x' } },
    )
    expect((await engine.stream({}, { target: FILE })).kind).toBe('stream')
    expect(engine.sleptMs).toEqual([250])
  })
})

describe('a body', () => {
  test('is streamed instead of the body of the definition', async () => {
    const resources = { files: { put: { method: 'PUT', path: '/file', body: { a: 'template' } } } }
    const headers = { 'content-type': 'text/csv', 'content-length': '3' }
    engine.upstream.script({ request: 'PUT /file', headers, body: 'a,b', answer: { status: 201 } })
    const request = { ...on('files', 'put'), headers, bodyStream: Readable.from([Buffer.from('a,b')]) }
    expect((await bytesOf(await engine.stream({ resources }, request))).answer.status).toBe(201)
  })

  test('that is given as a value is encoded as the definition says', async () => {
    engine.upstream.script({ request: 'PUT /file', headers: JSON_TYPE, body: { a: 1 }, answer: { text: 'x' } })
    await bytesOf(await engine.stream({}, { target: UPLOAD, body: { a: 1 } }))
  })

  test('of which only the caller knows the hash is signed by it', async () => {
    const config = { access_key_id: 'id', secret_access_key: 's', region: 'eu-central-1', service: 's3' }
    const headers = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }
    engine.upstream.script({ request: 'PUT /file', headers, body: 'x', answer: { status: 200 } })
    const request = { target: UPLOAD, headers, bodyStream: Readable.from([Buffer.from('x')]) }
    await bytesOf(await engine.stream({ authorization: { format: 'aws_sigv4', config } }, request))
  })

  test('does not leave through a sandbox account', async () => {
    const request = { target: UPLOAD, bodyStream: Readable.from([Buffer.from('x')]) }
    expect(await failureOf(engine.stream({}, request, { isSandbox: true }))).toContain('SANDBOX_ACCOUNT_READ_ONLY')
  })
})

describe('a rejected credential', () => {
  const config = { authorization: { format: 'bearer' } }
  const account = { credentials: { api_key: 'old' } }
  const refused = (request: string) => ({ request, headers: { authorization: 'Bearer old' }, answer: { status: 401 } })

  test('is renewed and the call repeated, when the body can be sent again', async () => {
    engine.upstream.script(refused('PUT /file'), {
      request: 'PUT /file',
      headers: { authorization: 'Bearer new' },
      body: { a: 1 },
      answer: { text: 'done' },
    })
    const outcome = await engine.stream(config, { target: UPLOAD, body: { a: 1 } }, account)
    expect((await bytesOf(outcome)).bytes.toString()).toBe('done')
    expect(kept()).toEqual(['renew'])
  })

  test('is renewed for the next call when it cannot, and nothing is held against the account', async () => {
    engine.upstream.script(refused('PUT /file'))
    const request = { target: UPLOAD, bodyStream: Readable.from([Buffer.from('x')]) }
    expect(await engine.stream(config, request, account)).toMatchObject({ kind: 'upstream_error', status: 401 })
    expect(kept()).toEqual(['renew'])
  })
})

describe('nothing is held', () => {
  const BYTES = 100 * MEGABYTE

  test('100 MB pass both ways with little of it on the way at any time', async () => {
    await using upstream = await startRawUpstream((socket, first) => {
      const head = first.indexOf('\r\n\r\n') + 4
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: ${BYTES}\r\n\r\n`)
      socket.write(first.subarray(head))
      socket.pipe(socket)
    })
    const source = zeros(BYTES)
    const headers = { 'content-length': String(BYTES) }
    const request = { target: UPLOAD, headers, bodyStream: source.body }
    const outcome = await engine.stream({ base_url: upstream.origin }, request)
    if (outcome.kind !== 'stream') throw new Error(outcome.kind)
    let received = 0
    let onTheWayMax = 0
    for await (const chunk of outcome.body) {
      received += chunk.length
      onTheWayMax = Math.max(onTheWayMax, source.produced() - received)
    }
    expect(received).toBe(BYTES)
    expect(onTheWayMax).toBeLessThan(BYTES / 3)
  })

  test('a reader who leaves closes the connection and gives its place back', async () => {
    let closed: Promise<unknown> | undefined
    await using upstream = await startRawUpstream((socket) => {
      closed = once(socket, 'close')
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\nstart')
    })
    const outcome = await engine.stream({ base_url: upstream.origin }, { target: FILE })
    expect(journal).toEqual(['acquire'])
    if (outcome.kind === 'stream') for await (const _chunk of outcome.body) break
    await closed
    expect(journal).toEqual(['acquire', 'release'])
  })

  test('an expression that fails closes it as well', async () => {
    let closed: Promise<unknown> | undefined
    await using upstream = await startRawUpstream((socket) => {
      closed = once(socket, 'close')
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\nstart')
    })
    const rate_limit = { rate_limit_header_expression: '$number("x")' }
    const call = engine.stream({ base_url: upstream.origin, rate_limit }, { target: FILE })
    expect(await failureOf(call)).toContain('EXPRESSION_FAILED')
    await closed
  })
})
