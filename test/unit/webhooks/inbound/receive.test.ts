import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, test } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { cpuMsOfThreads } from '../../../support/cpu-time.ts'
import { receiveFixture, SECRET, SIGNED, signatureOf, type TestRequest } from './receive-fixture.ts'

const { app, address, send, sendSigned, stored } = await receiveFixture()
const sha256 = (text: string) => hash('sha256', text)

describe('an accepted delivery', () => {
  it('is stored as it was sent, and queued, before it is answered', async () => {
    const { path, accountId } = await address(SIGNED)
    const body = '{"id": 12345678901234567890,  "a": "ü"}'
    const answer = await sendSigned(path, body, { 'X-Custom': 'one' })
    expect([answer.status, answer.text]).toEqual([200, '{}'])
    const [event] = await stored(accountId)
    expect(event).toMatchObject({
      state: 'received',
      signature: 'valid',
      isQueued: true,
      method: 'POST',
      duplicates: 0,
    })
    expect(event?.body.toString()).toBe(body)
    expect(event?.headers).toContainEqual(['X-Custom', 'one'])
  })

  it('is answered as the definition says', async () => {
    const response = { status: 202, body: '<Ack/>', headers: { 'Content-Type': 'text/xml' } }
    const { path } = await address({ ...SIGNED, response })
    const answer = await sendSigned(path, '{}')
    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([202, '<Ack/>', 'text/xml'])
  })

  it('has its credentials masked where it is stored', async () => {
    const { path, accountId } = await address(SIGNED)
    await sendSigned(path, '{}', { authorization: 'Bearer abc', 'x-echo': 'key=the-api-key-of-acme' })
    const [event] = await stored(accountId)
    const headers = new Map(event?.headers.map(([name, value]) => [name.toLowerCase(), value]))
    expect([headers.get('authorization'), headers.get('x-echo')]).toEqual(['***', '***'])
    expect(headers.get('x-signature')).toBe(signatureOf('{}'))
  })

  it('has the secrets in its query masked where it is stored', async () => {
    const { path, accountId } = await address(SIGNED)
    await sendSigned(`${path}?a=%20b&secret=hush&x=the-api-key-of-acme&b`, '{}')
    expect((await stored(accountId))[0]?.query).toBe('a=%20b&secret=***&x=***&b')
  })

  it('has the time that the third party says', async () => {
    const { path, accountId } = await address({
      ...SIGNED,
      provider_time: { value: '$payload.at', unit: 'iso' },
    })
    await sendSigned(path, '{"at": "2026-01-02T03:04:05Z"}')
    expect((await stored(accountId))[0]?.providerTime?.toISOString()).toBe('2026-01-02T03:04:05.000Z')
  })

  test.each([
    ['JSON', 'application/json', '{"a": [1]}', { a: [1] }],
    ['a form', 'application/x-www-form-urlencoded', 'a=1&b=x%20y&a=2', { a: ['1', '2'], b: 'x y' }],
    ['XML', 'text/xml', '<n><id>7</id></n>', { n: { id: '7' } }],
    ['text', 'text/plain', 'hello', 'hello'],
    ['JSON as text', 'text/plain', '{"a": 1}', { a: 1 }],
    ['nothing', 'application/json', '', null],
  ])('with a body of %s is read by its content type', async (_what, type, body, parsed) => {
    const transform = '{"seen": body, "type": $type(body)}'
    const { path, accountId } = await address({
      ...SIGNED,
      payload_transform: transform,
      handle_verification: 'body.nothing',
    })
    const answer = await sendSigned(path, body, { 'content-type': type })
    expect(answer.status).toBe(200)
    expect((await stored(accountId))[0]?.payload).toMatchObject({ seen: parsed })
  })
})

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
  'a request with the method %s reaches the definition',
  async (method) => {
    const { path, accountId } = await address({ dedupe: false })
    expect((await send(path, { method })).status).toBe(200)
    expect(await stored(accountId)).toMatchObject([{ state: 'received', method }])
  },
)

test.each(['OPTIONS', 'HEAD', 'GET'])(
  'a handshake with the method %s is answered by the definition',
  async (method) => {
    const handle_verification = `method in ["OPTIONS", "HEAD", "GET"] ? {"type": "verify", "verification_response":
    {"status_code": 202, "headers": {"WebHook-Allowed-Origin": headers."webhook-request-origin", "WebHook-Allowed-Rate": "120"}}}`
    const { path } = await address({ ...SIGNED, handle_verification, dedupe: false })
    const answer = await send(path, { method, headers: { 'webhook-request-origin': 'eventemitter.example.com' } })
    expect([
      answer.status,
      answer.headers.get('webhook-allowed-origin'),
      answer.headers.get('webhook-allowed-rate'),
    ]).toEqual([202, 'eventemitter.example.com', '120'])
  },
)

const PASSWORD = { format: 'compare', config: { secret: SECRET, compare_with: '$header.x-token' } }

test.each([
  ['none', { format: 'none' }, 'none'],
  ['one choice of any_of', { format: 'any_of', config: { verifications: [PASSWORD, { format: 'none' }] } }, 'none'],
  ['a member of all_of', { format: 'all_of', config: { verifications: [{ format: 'none' }, PASSWORD] } }, 'valid'],
])(
  'a delivery counts as authenticated only if not everyone could send it: %s',
  async (_what, verification, signature) => {
    const { path, accountId } = await address({ signature_verification: verification })
    await send(path, { body: '{}', headers: { 'x-token': SECRET } })
    expect(await stored(accountId)).toMatchObject([{ state: 'received', signature }])
  },
)

describe('what is rejected', () => {
  it('is answered 401 without a body, and kept with the reason and the first 4 KiB', async () => {
    const { path, accountId } = await address(SIGNED)
    const body = JSON.stringify({ text: 'x'.repeat(10_000) })
    const answer = await send(path, { body, headers: { 'x-signature': signatureOf(`${body} `) } })
    expect([answer.status, answer.text]).toEqual([401, ''])
    const [event] = await stored(accountId)
    expect(event).toMatchObject({
      state: 'rejected',
      signature: 'invalid',
      isQueued: false,
      key: null,
      bodyBytes: body.length,
    })
    expect(event?.body.length).toBe(4_096)
    expect(event?.trace).toMatchObject({
      signature: { reason: 'the signature does not match', parts: [{ source: '$body' }] },
    })
    expect(JSON.stringify(event?.trace)).not.toContain(signatureOf(body))
  })

  describe('is whose signature reads a payload that was not made:', () => {
    const compare = (config: JsonObject) => ({ signature_verification: { format: 'compare', config } })
    const list = { payload_transform: '[{"token": body[0].real}, 1]' }
    test.each([
      ['an element', { ...compare({ secret: SECRET, compare_with: '$payload[0].token' }), ...list }],
      [
        'an entry of a list',
        {
          ...compare({ secret: SECRET, compare_with: '$item.token', items: 'all' }),
          payload_transform: '{"all": [{"token": body[0].real}]}',
        },
      ],
    ])('%s', async (_what, webhook) => {
      const { path, accountId } = await address(webhook)
      const padding = 'x'.repeat(300_000)
      const statusOf = async (body: unknown) => (await send(path, { body: JSON.stringify(body) })).status
      expect(await statusOf([{ real: SECRET }])).toBe(200)
      expect(await statusOf([{ token: SECRET }])).toBe(401)
      expect(await statusOf([{ token: SECRET, real: SECRET, padding }])).toBe(401)
      expect((await stored(accountId)).map(({ state }) => state)).toEqual(['received', 'rejected', 'rejected'])
    })
  })

  it('is kept in bounded number, and leaves room for handshakes', async () => {
    const handle_verification = 'query.challenge ? {"type": "verify"}'
    const { path, accountId } = await address({ ...SIGNED, handle_verification })
    for (let round = 0; round < 21; round++)
      await Promise.all(Array.from({ length: 10 }, () => send(path, { body: '{}' })))
    await send(path, { method: 'GET', path: '?challenge=a' })
    const states = (await stored(accountId)).map(({ state }) => state)
    expect(states).toEqual([...Array.from({ length: 200 }, () => 'rejected'), 'handshake'])
  })

  it('does not claim the id of a genuine delivery', async () => {
    const { path, accountId } = await address({ ...SIGNED, dedupe: { keys: ['$payload.id'] } })
    expect((await send(path, { body: '{"id": 1}' })).status).toBe(401)
    expect((await sendSigned(path, '{"id": 1}')).status).toBe(200)
    expect((await stored(accountId)).map(({ state }) => state)).toEqual(['rejected', 'received'])
  })

  test.each([
    ['an unknown account', () => `/integrated-account-webhook/${newId()}`],
    ['an unknown installation', () => `/environment-integration-webhook/${newId()}`],
    ['what is no id', () => '/integrated-account-webhook/x%27y'],
    ['no id', () => '/integrated-account-webhook/'],
  ])('%s is answered 404', async (_what, path) => {
    expect((await send(path(), { body: '{}' })).status).toBe(404)
  })

  it('a definition without a webhook block is answered like an unknown id', async () => {
    const { path } = await address(undefined)
    const known = await send(path, { body: '{}' })
    const unknown = await send(`/integrated-account-webhook/${newId()}`, { body: '{}' })
    const shown = ({ status, text }: typeof known) => [status, text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '')]
    expect(shown(known)).toEqual(shown(unknown))
  })

  it('a body of 1 MiB is taken, and one byte more is not', async () => {
    const { path } = await address({})
    const body = Buffer.from(`{}${' '.repeat(1024 * 1024 - 2)}`)
    expect((await send(path, { body })).status).toBe(200)
    expect((await send(path, { body: Buffer.concat([body, Buffer.from(' ')]) })).status).toBe(413)
  })

  it('deliveries above the rate of an address are answered 429 with Retry-After', async () => {
    const { path } = await address({ rate_limit: { requests_per_second: 1, burst: 3 }, dedupe: false })
    const other = await address({ dedupe: false })
    const answers = await Promise.all(Array.from({ length: 6 }, () => send(path, { body: '{}' })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    const late = answers.filter(({ status }) => status === 429)
    expect(late.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1', '1'])
    expect((await send(other.path, { body: '{}' })).status).toBe(200)
  })

  it('while the keys of the signature cannot be fetched nothing is decided: 503', async () => {
    const { path, accountId } = await address({
      signature_verification: { format: 'jwt', config: { jwks_url: 'http://127.0.0.1:9/keys', algorithms: ['RS256'] } },
    })
    const answer = await send(path, { body: '{}', headers: { authorization: 'Bearer a.b.c' } })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60'])
    expect(await stored(accountId)).toEqual([])
  })
})

describe('duplicates', () => {
  test.each([
    ['the first key with a value', { keys: ['$header.x-event', '$payload.id'] }, 'e-1'],
    ['parts together', { keys: [['$payload.id', '$header.x-event']] }, '["7","e-1"]'],
    ['what is read where no key has a value', { keys: ['$header.x-none'] }, expect.stringMatching(/^sha256:/)],
  ])('are recognised by %s', async (_what, dedupe, key) => {
    const { path, accountId } = await address({ ...SIGNED, dedupe })
    const answers = await Promise.all([1, 2, 3].map(() => sendSigned(path, '{"id": 7}', { 'x-event': 'e-1' })))
    answers.push(await sendSigned(path, '{"id": 7}', { 'x-event': 'e-1' }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(await stored(accountId)).toEqual([expect.objectContaining({ key, duplicates: 3 })])
  })

  it.each<[what: string, first: TestRequest, second: TestRequest, events: number]>([
    [
      'the id of both is the same',
      { headers: { 'x-delivery': 'a' } },
      { body: '{"id": 8}', headers: { 'x-delivery': 'a' } },
      1,
    ],
    ['the id differs', { headers: { 'x-delivery': 'a' } }, { headers: { 'x-delivery': 'b' } }, 2],
    ['the id looks like a digest', { headers: { 'x-delivery': `sha256:${sha256('{"id": 7}')}` } }, {}, 2],
    ['nothing differs', {}, {}, 1],
    ['a header differs that nothing reads', { headers: { date: 'today' } }, { headers: { date: 'tomorrow' } }, 1],
    ['the method differs', {}, { method: 'PUT' }, 2],
    ['a parameter differs', { path: '?x=1' }, { path: '?x=2' }, 2],
    ['the body differs', {}, { body: '{"id": 8}' }, 2],
    ['the content type differs', {}, { headers: { 'content-type': 'text/plain' } }, 2],
    ['a header of the signature differs', {}, { headers: { 'x-more': '1' } }, 2],
    ['a header of the mapping differs', { headers: { 'x-topic': 'a' } }, { headers: { 'x-topic': 'b' } }, 2],
    ['a header of the lookup differs', { headers: { 'x-shop': 'a' } }, { headers: { 'x-shop': 'b' } }, 2],
    ['a header of the handshake differs', { headers: { 'x-kind': 'a' } }, { headers: { 'x-kind': 'b' } }, 2],
    ['a header of the transform differs', { headers: { 'x-event': 'a' } }, { headers: { 'x-event': 'b' } }, 2],
    ['there is no body', { body: '' }, { body: '' }, 2],
    [
      'there is no body, and the same id',
      { body: '', headers: { 'x-delivery': 'a' } },
      { body: '', headers: { 'x-delivery': 'a' } },
      1,
    ],
  ])('two requests with one signed body, where %s', async (_what, first, second, events) => {
    const { path, accountId } = await address({
      signature_verification: {
        format: 'hmac',
        config: { secret: SECRET, parts: ['$body', ['$header.x-more']], compare_with: '$header.x-signature' },
      },
      payload_transform: '{"seen": headers."x-event"}',
      handle_verification: 'headers."x-kind" = "ping" ? {"type": "meta"}',
      events: '{"event": headers."x-topic", "resource": "a", "id": 1}',
      context_lookup: { value: 'headers."x-shop"', field: 'shop' },
      dedupe: { keys: ['$header.x-delivery'] },
    })
    for (const { body = '{"id": 7}', headers = {}, ...request } of [first, second]) {
      const signature = signatureOf(`${body}${headers['x-more'] ?? ''}`)
      expect((await send(path, { body, ...request, headers: { ...headers, 'x-signature': signature } })).status).toBe(
        200,
      )
    }
    expect(await stored(accountId)).toHaveLength(events)
  })

  it('with the same content are news after 10 minutes, with the same id after 7 days', async () => {
    const { path, accountId } = await address({ ...SIGNED, dedupe: { keys: ['$header.x-delivery'] } })
    await sendSigned(path, '{"id": 7}')
    await sendSigned(path, '{"id": 7}', { 'x-delivery': 'one' })
    const rows = await query<{ readonly seconds: number }>(
      app.database.pool,
      'select extract(epoch from expires_at - now())::integer as seconds from inbound_dedupe where source_id = :accountId order by 1',
      { accountId },
    )
    expect(rows.map(({ seconds }) => Math.ceil(seconds / 60))).toEqual([10, 7 * 24 * 60])
  })

  it('are events of their own where the definition says so', async () => {
    const { path, accountId } = await address({ ...SIGNED, dedupe: false })
    await sendSigned(path, '{}')
    await sendSigned(path, '{}')
    expect((await stored(accountId)).map(({ key }) => key)).toEqual([null, null])
  })

  it('are counted per address', async () => {
    const one = await address({ ...SIGNED, dedupe: { keys: ['$payload.id'] } })
    const other = await address({ ...SIGNED, dedupe: { keys: ['$payload.id'] } })
    await sendSigned(one.path, '{"id": 1}')
    await sendSigned(other.path, '{"id": 1}')
    expect(await stored(other.accountId)).toEqual([expect.objectContaining({ duplicates: 0 })])
  })
})

describe('a compressed body', () => {
  const text = '{"id": 7}'
  const bytes = gzipSync(text)

  test.each([
    ['raw', signatureOf(bytes)],
    ['decoded', signatureOf(text)],
  ])('is verified over its %s bytes and parsed', async (body_stage, signature) => {
    const { path, accountId } = await address({ ...SIGNED, body_stage, dedupe: { keys: ['$payload.id'] } })
    const headers = { 'content-encoding': 'gzip', 'x-signature': signature }
    expect((await send(path, { body: bytes, headers })).status).toBe(200)
    expect((await stored(accountId))[0]).toMatchObject({ key: '7', body: Buffer.from(bytes) })
  })

  test.each<[what: string, headers: Record<string, string>, body: Buffer, status: number]>([
    ['that is not what it says', { 'content-encoding': 'gzip' }, Buffer.from('no gzip'), 400],
    ['with an unknown coding', { 'content-encoding': 'compress' }, Buffer.from('{}'), 415],
    ['that grows too large', { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(9 * 1024 * 1024)), 413],
    ['that is no JSON', {}, Buffer.from('{'), 400],
  ])('%s is answered with a status, and kept with the reason', async (_what, headers, body, status) => {
    for (const webhook of [
      SIGNED,
      { ...SIGNED, handle_verification: 'body.a ? {"type": "verify"}' },
      { dedupe: false },
    ]) {
      const { path, accountId } = await address(webhook)
      const answer = await send(path, { body, headers: { ...headers, 'x-signature': signatureOf(body) } })
      expect(answer.status).toBe(status)
      expect(await stored(accountId)).toMatchObject([
        { state: 'rejected', isQueued: false, trace: { body: { problem: expect.any(String) } } },
      ])
    }
  })
})

it('a body may be as large as the definition says, at most 25 MiB, its signature over all of it', async () => {
  const bytesMax = 25 * 1024 * 1024
  const body = JSON.stringify({ id: 7, filler: 'x'.repeat(bytesMax - 20) })
  const [large, usual] = [await address({ ...SIGNED, max_body_bytes: bytesMax }), await address(SIGNED)]
  expect(Buffer.byteLength(body)).toBe(bytesMax)
  expect((await sendSigned(large.path, body)).status).toBe(200)
  const [event] = await stored(large.accountId)
  expect(event).toMatchObject({ state: 'received', signature: 'valid', bodyBytes: bytesMax, isQueued: true })
  expect(event?.body.equals(Buffer.from(body))).toBe(true)
  const forged = `${body.slice(0, -3)}y"}`
  expect((await send(large.path, { body: forged, headers: { 'x-signature': signatureOf(body) } })).status).toBe(401)
  expect((await sendSigned(large.path, `${body} `)).status).toBe(413)
  expect((await sendSigned(usual.path, body)).status).toBe(413)
})

it('of a body whose signature reads the payload no more than 8 MiB are read', async () => {
  const { path, accountId } = await address({ ...FLOODED['the parsed body'], max_body_bytes: 25 * 1024 * 1024 })
  const body = JSON.stringify({ token: SECRET, filler: 'x'.repeat(9 * 1024 * 1024) })
  expect((await send(path, { body })).status).toBe(413)
  expect(await stored(accountId)).toMatchObject([{ state: 'rejected', signature: 'none' }])
})

const FLOODED: Readonly<Record<string, JsonObject>> = {
  'the parsed body': {
    signature_verification: { format: 'compare', config: { secret: SECRET, compare_with: '$payload.token' } },
  },
  'a handshake and the bytes': { ...SIGNED, handle_verification: 'body.challenge ? {"type": "verify"}' },
}
test.each(Object.entries(FLOODED))(
  'signed webhooks pass while two installations flood theirs with large unsigned bodies, where %s is read',
  async (_what, webhook) => {
    const [one, other, own] = [
      await address(webhook),
      await address(webhook),
      await address({ ...webhook, dedupe: false }),
    ]
    const flood = gzipSync(JSON.stringify({ filler: 'x'.repeat(7 * 1024 * 1024) }))
    const headers = { 'content-encoding': 'gzip' }
    const floods = Array.from({ length: 20 }, (_, index) =>
      send(index % 2 ? one.path : other.path, { body: flood, headers }),
    )
    const statuses: number[] = []
    for (let count = 0; count < 30; count += 1)
      statuses.push((await sendSigned(own.path, JSON.stringify({ token: SECRET, count }))).status)
    expect(statuses).toEqual(statuses.map(() => 200))
    const large = JSON.stringify({ token: SECRET, filler: 'x'.repeat(900_000) })
    expect((await sendSigned(own.path, large)).status).toBe(200)
    await Promise.all(floods)
  },
)

const MIB = 1024 * 1024
/** Bodies of few bytes that cost much to decompress and parse. */
const BOMBS: Readonly<Record<string, readonly [type: string, body: Buffer]>> = {
  XML: ['text/xml', gzipSync(`<a>${'<b/>'.repeat(2 * MIB)}</a>`)],
  JSON: ['application/json', gzipSync(`[${'[],'.repeat(2 * MIB)}[]]`)],
  form: ['application/x-www-form-urlencoded', gzipSync('a=1&'.repeat(2 * MIB))],
}
const OF_BYTES: Readonly<Record<string, JsonObject>> = {
  'the bytes as sent': SIGNED,
  'the bytes as sent, after a handshake': { ...SIGNED, handle_verification: 'body.challenge ? {"type": "verify"}' },
  'no more than a header': {
    signature_verification: { format: 'compare', config: { secret: SECRET, compare_with: '$header.x-token' } },
  },
}
/** One body took ten seconds of a processor to decompress and parse. */
const CPU_MS_MAX = 2_000

describe.each(Object.entries(OF_BYTES))('an unsigned request where the signature reads %s', (_what, webhook) => {
  it.each(Object.entries(BOMBS))('is rejected before a body of much %s is read', async (_type, [type, body]) => {
    const { path } = await address(webhook)
    const headers = { 'content-type': type, 'content-encoding': 'gzip' }
    const statuses = new Set<number>()
    const cpuMs = await cpuMsOfThreads(async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(path, { body, headers })))
      for (const { status } of answers) statuses.add(status)
    })
    expect(statuses).toEqual(new Set([401]))
    expect(cpuMs).toBeLessThan(CPU_MS_MAX)
  })
})

describe.each([
  ['the parsed body', { format: 'compare', config: { secret: SECRET, compare_with: '$payload.token' } }],
  ['the decompressed body', { ...(SIGNED.signature_verification as JsonObject), body_stage: 'decoded' }],
])('unsigned requests where the signature reads %s', (_what, { body_stage, ...signature_verification }: JsonObject) => {
  it('share a budget of large bodies by address, and leave the others their own', async () => {
    const webhook = { signature_verification, ...(body_stage === undefined ? {} : { body_stage }) }
    const [attacked, other] = [await address(webhook), await address(SIGNED)]
    const [type, body] = ['text/plain', gzipSync('x'.repeat(7 * MIB))]
    const sent = { body, headers: { 'content-type': type, 'content-encoding': 'gzip' } }
    const [answers, signed] = await Promise.all([
      Promise.all(Array.from({ length: 30 }, () => send(attacked.path, sent))),
      sendSigned(other.path, '{}'),
    ])
    const statuses = answers.map(({ status }) => status)
    expect(signed.status).toBe(200)
    expect(new Set(statuses)).toEqual(new Set([401, 429]))
    const retryAfter = answers.find(({ status }) => status === 429)?.headers.get('retry-after')
    expect(Number(retryAfter)).toBeGreaterThan(0)
    // The budget is given back.
    expect((await send(attacked.path, sent)).status).toBe(401)
  })

  it('pass with a signature, however large', async () => {
    const text = JSON.stringify({ token: SECRET, more: 'x'.repeat(MIB) })
    const { path, accountId } = await address({
      signature_verification,
      ...(body_stage === undefined ? {} : { body_stage }),
    })
    const headers = { 'x-signature': signatureOf(text), 'content-encoding': 'gzip' }
    expect((await send(path, { body: gzipSync(text), headers })).status).toBe(200)
    expect((await stored(accountId))[0]).toMatchObject({ state: 'received', signature: 'valid' })
  })
})
