import { isUtf8 } from 'node:buffer'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { sendRaw } from '../../../../src/engine/proxy/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { parseRequest } from '../../../../src/webhooks/inbound/parsed-request.ts'
import { on, startEngine } from './engine.ts'

/** Codings, charsets, types, cuts and labels that are wrong: what comes in is read alike in both directions, and never replaced. */

const engine = await startEngine()
const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(() => http[Symbol.asyncDispose]())

/** A text in a charset; Latin letters around it are ASCII, but in UTF-16. */
interface Encoded {
  readonly text: string
  readonly wrap: (before: string, after: string) => Buffer
}

const inBytes = (text: string, ...bytes: number[]): Encoded => ({
  text,
  wrap: (before, after) => Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]),
})
const CHARSETS: Readonly<Record<string, Encoded>> = {
  'us-ascii': inBytes('Zoe', 0x5a, 0x6f, 0x65),
  'utf-8': inBytes('ë名', 0xc3, 0xab, 0xe5, 0x90, 0x8d),
  'utf-16le': { text: 'ë名', wrap: (before, after) => Buffer.from(`${before}ë名${after}`, 'utf16le') },
  'utf-16be': { text: 'ë名', wrap: (before, after) => Buffer.from(`${before}ë名${after}`, 'utf16le').swap16() },
  'windows-1252': inBytes('ë€', 0xeb, 0x80),
  'iso-8859-15': inBytes('€', 0xa4),
  gbk: inBytes('名', 0xc3, 0xfb),
  shift_jis: inBytes('名', 0x96, 0xbc),
}

/** How a content type names the charset; `undefined`: not at all. */
const LABELS: Readonly<Record<string, (charset: string) => string | undefined>> = {
  right: (charset) => charset,
  'in capitals and quotes': (charset) => `"${charset.toUpperCase()}"`,
  'in single quotes': (charset) => `'${charset}'`,
  missing: () => undefined,
  'UTF-8': () => 'utf-8',
  'Latin-1': () => 'iso-8859-1',
  unknown: () => 'x-klingon',
}

interface BodyType {
  readonly type: string
  readonly around: readonly [string, string]
  readonly isJson?: boolean
  /** What is read, of a call, a webhook and a token request; absent: it is not tried. */
  readonly answer?: (text: string) => Json
  readonly webhook?: (text: string) => Json
  readonly token?: (text: string) => Json
  readonly format?: string
}

const same = (read: (text: string) => Json) => ({ answer: read, webhook: read })
const TYPES: readonly BodyType[] = [
  {
    type: 'application/json',
    around: ['{"a":"', '"}'],
    isJson: true,
    ...same((a) => ({ a })),
    token: (a) => `{"a":"${a}"}`,
  },
  { type: 'application/vnd.api+json', around: ['["', '"]'], isJson: true, ...same((a) => [a]) },
  {
    type: 'application/x-ndjson',
    around: ['{"a":"', '"}\n{"a":"z"}\n'],
    isJson: true,
    ...same((a) => [{ a }, { a: 'z' }]),
  },
  { type: 'text/plain', around: ['it is ', '!'], ...same((a) => `it is ${a}!`), token: (a) => `it is ${a}!` },
  { type: 'application/xml', around: ['<a>', '</a>'], webhook: (a) => ({ a }) },
  { type: 'application/xml', format: 'xml', around: ['<a>', '</a>'], answer: (a) => ({ a }) },
  { type: 'text/csv', format: 'csv', around: ['a;b\n1;', '\n'], answer: (b) => [{ a: '1', b }] },
  { type: 'text/tab-separated-values', around: ['a\tb\n1\t', '\n'], answer: (b) => [{ a: '1', b }] },
  {
    type: 'application/x-www-form-urlencoded',
    around: ['a=', '&b=1'],
    webhook: (a) => ({ a, b: '1' }),
    token: (a) => ({ a, b: '1' }),
  },
]

const UNREADABLE = Symbol('a body that cannot be read')

/** What the rules say. @param label as it is known to the Encoding Standard, or not */
function readingOf(bytes: Buffer, label: string | undefined, isJson: boolean): string | typeof UNREADABLE {
  const zero = bytes.subarray(0, 2).indexOf(0)
  if (isJson && zero >= 0) return decoded(bytes, zero === 0 ? 'utf-16be' : 'utf-16le')
  if (isJson && isUtf8(bytes)) return bytes.toString()
  if (label === undefined) return decoded(bytes, 'utf-8')
  try {
    new TextDecoder(label)
  } catch {
    return isUtf8(bytes) && zero === -1 ? bytes.toString() : UNREADABLE
  }
  return decoded(bytes, label)
}

function decoded(bytes: Buffer, charset: string): string | typeof UNREADABLE {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    return UNREADABLE
  }
}

interface BodyCase {
  readonly what: string
  readonly kind: BodyType
  readonly contentType: string
  readonly bytes: Buffer
  readonly inner: string | typeof UNREADABLE
}

/** Every body with its content type, and what is to be read. */
const BODIES = TYPES.flatMap((kind) =>
  Object.entries(CHARSETS).flatMap(([charset, { wrap }]) =>
    Object.entries(LABELS).flatMap(([labelled, name]): BodyCase[] => {
      const isWide = charset.startsWith('utf-16')
      const isPercentEncoded = kind.type.includes('form')
      if (isWide && (isPercentEncoded || kind.type.includes('xml'))) return []
      const label = name(charset)
      const bytes = wrap(...kind.around)
      const text = readingOf(bytes, label?.replaceAll(/["']/g, ''), kind.isJson ?? false)
      const [before, after] = kind.around
      // A label that is wrong may move the ends of the text too: then the whole is another one, or none.
      const inner =
        text === UNREADABLE
          ? UNREADABLE
          : text.startsWith(before) && text.endsWith(after)
            ? text.slice(before.length, text.length - after.length)
            : undefined
      if (inner === undefined) return []
      const contentType = label === undefined ? kind.type : `${kind.type}; charset=${label}`
      return [{ what: `${kind.type}, ${charset}, label ${labelled}`, kind, contentType, bytes, inner }]
    }),
  ),
)

async function answerOf(contentType: string, bytes: Buffer, format?: string, coding?: string): Promise<unknown> {
  const headers = { 'content-type': contentType, ...(coding === undefined ? {} : { 'content-encoding': coding }) }
  engine.upstream.script({ request: 'GET /things/1', answer: { bytes, headers } })
  const get = {
    path: '/things/1',
    retry: { max_attempts: 1 },
    ...(format === undefined ? {} : { response_format: format }),
  }
  return await outcomeOf(async () => {
    const outcome = await engine.call({ resources: { things: { get } } }, on('things', 'get'))
    return outcome.kind === 'ok' ? outcome.body : outcome
  })
}

async function tokenOf(contentType: string, bytes: Buffer, coding?: string): Promise<unknown> {
  const headers = { 'content-type': contentType, ...(coding === undefined ? {} : { 'content-encoding': coding }) }
  engine.upstream.script({ request: 'GET /token', answer: { bytes, headers } })
  const plan = compilePlan({ base_url: engine.upstream.url, resources: { token: { get: { path: '/token' } } } })
  const method = plan.resources.get('token')?.get('get')
  if (method === undefined) throw new Error('no method')
  const scope = { account: { context: {}, credentials: {}, environmentVariables: {} }, call: {} }
  const limits = { timeoutMs: 10_000, responseBytesMax: 100_000, owner: 'one' }
  return await outcomeOf(async () => (await sendRaw(http, method, scope, limits)).body)
}

async function outcomeOf(read: () => Promise<unknown>): Promise<unknown> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Failure && error.reason === 'UPSTREAM_INVALID_RESPONSE') return UNREADABLE
    throw error
  }
}

async function webhookOf(contentType: string, body: Buffer, coding?: string): Promise<{ body: Json; status?: number }> {
  const headers = [
    ['Content-Type', contentType] as const,
    ...(coding === undefined ? [] : [['Content-Encoding', coding] as const]),
  ]
  const request = { method: 'POST', path: '/', query: '', headers, body }
  const parsed = await parseRequest(
    request,
    'https://a',
    { owner: 'one' },
    { bodyBytesMax: 100_000, formJsonField: undefined },
  )
  return parsed.problem === undefined ? { body: parsed.body } : { body: parsed.body, status: parsed.problem.status }
}

test('answers are read by type and charset, whatever their label says', async () => {
  const wrong: JsonObject[] = []
  for (const { what, kind, contentType, bytes, inner } of BODIES) {
    if (kind.answer === undefined) continue
    const read = await answerOf(contentType, bytes, kind.format)
    const expected = inner === UNREADABLE ? UNREADABLE : kind.answer(inner)
    if (JSON.stringify(read) !== JSON.stringify(expected)) wrong.push({ what, read: String(JSON.stringify(read)) })
  }
  expect(wrong).toEqual([])
})

test('token answers are read by type and charset, whatever their label says', async () => {
  const wrong: JsonObject[] = []
  for (const { what, kind, contentType, bytes, inner } of BODIES) {
    if (kind.token === undefined) continue
    const read = await tokenOf(contentType, bytes)
    const expected = inner === UNREADABLE ? UNREADABLE : kind.token(inner)
    if (JSON.stringify(read) !== JSON.stringify(expected)) wrong.push({ what, read: String(JSON.stringify(read)) })
  }
  expect(wrong).toEqual([])
})

test('webhooks are read by type and charset, whatever their label says', async () => {
  const wrong: JsonObject[] = []
  for (const { what, kind, contentType, bytes, inner } of BODIES) {
    if (kind.webhook === undefined) continue
    const read = await webhookOf(contentType, bytes)
    const expected = inner === UNREADABLE ? { body: null, status: 415 } : { body: kind.webhook(inner) }
    if (JSON.stringify(read) !== JSON.stringify(expected)) wrong.push({ what, read: String(JSON.stringify(read)) })
  }
  expect(wrong).toEqual([])
})

const PLAIN = Buffer.from('{"a":"ë名"}')
const VALUE = { a: 'ë名' }
/** Name, bytes, and how they are read: as the value, as an unknown coding, as bytes that are not what they say. */
const CODINGS: readonly (readonly [name: string, bytes: Buffer, reading: 'read' | 'unknown' | 'corrupt'])[] = [
  ...[
    '',
    'identity',
    'Identity',
    'none',
    'binary',
    'UTF-8',
    'utf8',
    'aws-chunked',
    'identity, utf-8',
    'ISO-8859-1',
  ].map((name) => [name, PLAIN, 'read'] as const),
  ...['gzip', 'GZIP', 'x-gzip', 'gzip, identity', 'aws-chunked, gzip', 'utf-8,gzip', ' gzip ,'].map(
    (name) => [name, gzipSync(PLAIN), 'read'] as const,
  ),
  ...[4, 8].map((bytes) => ['gzip', gzipSync(PLAIN).subarray(0, -bytes), 'read'] as const),
  ['gzip', gzipSync(PLAIN).subarray(0, 20), 'corrupt'],
  ['gzip', Buffer.concat([gzipSync(PLAIN.subarray(0, 5)), gzipSync(PLAIN.subarray(5))]), 'read'],
  ['gzip', Buffer.concat([gzipSync(PLAIN), Buffer.alloc(16)]), 'read'],
  ['gzip', Buffer.concat([gzipSync(PLAIN), Buffer.from('\r\n \n')]), 'read'],
  ['gzip', Buffer.concat([gzipSync(PLAIN), gzipSync(PLAIN).subarray(0, 6)]), 'corrupt'],
  ['gzip', Buffer.concat([gzipSync(PLAIN).subarray(0, -8), Buffer.alloc(8)]), 'corrupt'],
  ['gzip', PLAIN, 'corrupt'],
  ['deflate', deflateSync(PLAIN), 'read'],
  ['deflate', deflateRawSync(PLAIN), 'read'],
  ['deflate', deflateSync(PLAIN).subarray(0, -4), 'read'],
  ['deflate', deflateSync(PLAIN).subarray(0, 8), 'corrupt'],
  ['br', brotliCompressSync(PLAIN), 'read'],
  ['br', brotliCompressSync(PLAIN).subarray(0, 8), 'corrupt'],
  ['zstd', zstdCompressSync(PLAIN), 'read'],
  ['zstd', zstdCompressSync(PLAIN).subarray(0, -3), 'corrupt'],
  ['gzip, deflate', deflateSync(gzipSync(PLAIN)), 'read'],
  ['gzip, gzip, gzip', gzipSync(gzipSync(gzipSync(PLAIN))), 'unknown'],
  ['compress', PLAIN, 'unknown'],
  ['x-klingon', PLAIN, 'unknown'],
]

test.each(CODINGS.map(([name, bytes, reading]) => ({ name, bytes, reading })))(
  '$reading: content coding "$name"',
  async ({ name, bytes, reading }) => {
    const isRead = reading === 'read'
    expect(await answerOf('application/json', bytes, undefined, name)).toEqual(isRead ? VALUE : UNREADABLE)
    expect(await tokenOf('application/json', bytes, name)).toEqual(isRead ? PLAIN.toString() : UNREADABLE)
    const status = reading === 'unknown' ? 415 : 400
    expect(await webhookOf('application/json', bytes, name)).toEqual(isRead ? { body: VALUE } : { body: null, status })
  },
)

test.each<[string, string, Buffer, Json]>([
  ['a charset as libraries write it', 'application/json; charset=UTF8', PLAIN, VALUE],
  [
    'two types in one header',
    'application/json; charset=iso-8859-1, application/json',
    Buffer.from('["\xeb"]', 'latin1'),
    ['ë'],
  ],
  ['a charset of a vendor', 'application/json; charset=X-WINDOWS-949', PLAIN, VALUE],
  ['an empty charset', 'text/plain; charset=', Buffer.from('ë'), 'ë'],
  ['a byte order mark before JSON', 'application/json', Buffer.from('\ufeff{"a":"ë名"}'), VALUE],
])('is read: %s', async (_what, contentType, bytes, value) => {
  expect(await answerOf(contentType, bytes)).toEqual(value)
  expect(await webhookOf(contentType, bytes)).toEqual({ body: value })
})

test('an unknown coding is named, and not asked for again', async () => {
  const answer = { bytes: PLAIN, headers: { 'content-encoding': 'x-klingon' } }
  engine.upstream.script({ request: 'GET /things/1', answer })
  const call = engine.call({ resources: { things: { get: { path: '/things/1' } } } }, on('things', 'get'))
  await expect(call).rejects.toMatchObject({
    isPermanent: true,
    publicMessage: expect.stringContaining('uses the content encoding "x-klingon", which is not supported'),
  })
})
