import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it, test } from 'vitest'
import { parseRequest } from '../../../../src/webhooks/inbound/parsed-request.ts'
import { cpuMsOfThreads } from '../../../support/cpu-time.ts'
import { turnsDuring } from '../../../support/event-loop-turns.ts'

const WEBHOOK = { bodyBytesMax: 1024 * 1024, formJsonField: 'payload' }
const FORM = 'application/x-www-form-urlencoded'
const TOO_MANY = 'the body has more than 10000 form fields, or is too long'
/** Parsing the fields of any of these bodies takes a multiple of this. */
const CPU_MS_MAX = 250

function parse(body: Uint8Array, query = '', more: readonly (readonly [string, string])[] = []) {
  const headers = more.some(([name]) => name === 'content-type') ? more : ([['content-type', FORM], ...more] as const)
  const request = { method: 'POST', path: '/hook', query, headers, body }
  return parseRequest(request, 'https://hooks.example.com', { owner: 'one' }, WEBHOOK)
}

describe('a form', () => {
  test.each([
    ['fields', Buffer.from('a&'.repeat(524_288)), []],
    ['compressed fields', gzipSync('a&'.repeat(524_288)), [['content-encoding', 'gzip']]],
  ] as const)('with too many %s is rejected before it is parsed', async (_what, body, headers) => {
    expect(await cpuMsOfThreads(() => parse(body, '', headers))).toBeLessThan(CPU_MS_MAX)
    expect(await parse(body, '', headers)).toMatchObject({ body: null, problem: { status: 400, message: TOO_MANY } })
  })

  test.each(['', '; charset=windows-1252'])('of escaped bytes%s costs little', async (charset) => {
    const body = gzipSync(`a=${'%41'.repeat(2_500_000)}`)
    const headers = [['content-type', `${FORM}${charset}`] as const, ['content-encoding', 'gzip'] as const]
    expect(await cpuMsOfThreads(() => parse(body, '', headers))).toBeLessThan(4 * CPU_MS_MAX)
    expect((await parse(body, '', headers)).body).toEqual({ a: 'A'.repeat(2_500_000) })
  })

  it('lets other requests run while it is decompressed', async () => {
    const body = gzipSync('a&'.repeat(524_288))
    expect(await turnsDuring(() => parse(body, '', [['content-encoding', 'gzip']]))).toBeGreaterThan(0)
  })

  it('may have 10 000 fields', async () => {
    const { body } = await parse(Buffer.from(`${'a=1&'.repeat(9_999)}b=2`))
    expect(body).toMatchObject({ b: '2' })
  })
})

it('a query string with too many parameters has none, and costs nothing', async () => {
  const query = 'a&'.repeat(524_288)
  expect(await cpuMsOfThreads(() => parse(Buffer.alloc(0), query))).toBeLessThan(CPU_MS_MAX)
  expect((await parse(Buffer.alloc(0), query)).query).toEqual({})
})

const TEXT = JSON.stringify({ name: 'Zoë', filler: 'x'.repeat(40_000) })
const gzip = gzipSync(TEXT)
const deflate = deflateSync(TEXT)
const read = (type: string, body: Uint8Array, encoding?: string) =>
  parse(body, '', [
    ['content-type', type] as const,
    ...(encoding === undefined ? [] : [['content-encoding', encoding] as const]),
  ])

describe('a body with a content encoding', () => {
  test.each<[what: string, encoding: string, body: Buffer]>([
    ['gzip', 'gzip', gzip],
    ['gzip in capitals', 'X-GZIP', gzip],
    ['gzip without its trailer', 'gzip', gzip.subarray(0, -8)],
    ['gzip with half of its trailer', 'gzip', gzip.subarray(0, -3)],
    [
      'gzip of two members, the last without its trailer',
      'gzip',
      Buffer.concat([gzipSync(TEXT.slice(0, 9)), gzipSync(TEXT.slice(9)).subarray(0, -8)]),
    ],
    ['deflate', 'deflate', deflate],
    ['deflate without its trailer', 'deflate', deflate.subarray(0, -4)],
    ['deflate without a header', 'deflate', deflateRawSync(TEXT)],
    ['brotli', 'br', brotliCompressSync(TEXT)],
    ['zstd', 'zstd', zstdCompressSync(TEXT)],
    ['two codings', 'gzip, deflate', deflateSync(gzip)],
    ...['', 'identity', 'none', 'UTF-8', 'utf8', 'iso-8859-1', 'binary', 'aws-chunked'].map(
      (name): [string, string, Buffer] => [`the name ${name}, which is no coding`, name, Buffer.from(TEXT)],
    ),
  ])('%s is read', async (_what, encoding, body) => {
    expect(await read('application/json', body, encoding)).toMatchObject({ body: { name: 'Zoë' }, problem: undefined })
  })

  test.each<[what: string, encoding: string, body: Buffer, status: number]>([
    ['an unknown coding', 'compress', gzip, 415],
    ['a made-up coding', 'foo', Buffer.from(TEXT), 415],
    ['three codings', 'gzip, gzip, gzip', gzip, 415],
    ['gzip that is cut off in its data', 'gzip', gzip.subarray(0, 60), 400],
    ['gzip that is cut off in its header', 'gzip', gzip.subarray(0, 5), 400],
    ['gzip whose second member is cut off', 'gzip', Buffer.concat([gzip, gzip.subarray(0, 60)]), 400],
    ['gzip with a wrong checksum', 'gzip', Buffer.concat([gzip.subarray(0, -8), Buffer.alloc(8)]), 400],
    ['deflate that is cut off', 'deflate', deflate.subarray(0, 60), 400],
    ['brotli that is cut off', 'br', brotliCompressSync(TEXT).subarray(0, 20), 400],
    ['zstd that is cut off', 'zstd', zstdCompressSync(TEXT).subarray(0, 20), 400],
    ['no compression at all', 'gzip', Buffer.from(TEXT), 400],
  ])('%s is not read', async (_what, encoding, body, status) => {
    expect(await read('text/csv', body, encoding)).toMatchObject({ body: null, problem: { status } })
  })
})

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const boundary = 'multipart/form-data; boundary=b'
const part = (head: string, text: string) => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`

describe('a body of', () => {
  test.each<[type: string, body: Uint8Array, parsed: unknown]>([
    [`${FORM}; charset=windows-1252`, latin1('first_name=Zo%EB&b=%80'), { first_name: 'Zoë', b: '€' }],
    [`${FORM}; charset=ISO-8859-1`, latin1('first_name=Zoë+A'), { first_name: 'Zoë A' }],
    [`${FORM}; charset="gbk"`, latin1('n=%C4%E3%BA%C3'), { n: '你好' }],
    [FORM, Buffer.from('\ufeffa=1'), { '\ufeffa': '1' }],
    [`${FORM}; charset=windows-1252`, latin1('\xef\xbb\xbfa=1'), { 'ï»¿a': '1' }],
    [`${FORM}; charset=utf-8`, latin1('n=Zo%C3%AB&u=%EF%BF%BD'), { n: 'Zoë', u: '\uFFFD' }],
    [FORM, latin1('charset=windows-1252&first_name=Zo%EB'), { charset: 'windows-1252', first_name: 'Zoë' }],
    [FORM, latin1('charset=windows-1252&first_name=Zo%C3%AB'), { charset: 'windows-1252', first_name: 'Zoë' }],
    [FORM, latin1('_charset_=shift_jis&n=%93%FA'), { _charset_: 'shift_jis', n: '日' }],
    [FORM, latin1('a=1&a=2&b&=3&c=%zz'), { a: ['1', '2'], b: '', '': '3', c: '%zz' }],
    [FORM, latin1('payload=%7B%22a%22%3A1%7D'), { a: 1 }],
    ['application/json; charset=iso-8859-1', Buffer.from('{"a":"ë"}'), { a: 'ë' }],
    ['application/json; charset=iso-8859-1', latin1('{"a":"ë"}'), { a: 'ë' }],
    ['application/json; charset=nonsense', Buffer.from('{"a":"ë"}'), { a: 'ë' }],
    ['application/json; charset=utf-16le', Buffer.from('{"a":"ë"}', 'utf16le'), { a: 'ë' }],
    ['application/x-ndjson; charset=latin1', Buffer.from('{"a":"ë"}\n'), [{ a: 'ë' }]],
    ['text/plain; charset=iso-8859-1', Buffer.from('{"a":"ë"}'), { a: 'ë' }],
    ['text/plain; charset=iso-8859-1', latin1('ë'), 'ë'],
    ['text/xml; charset=iso-8859-1', latin1('<a>ë</a>'), { a: 'ë' }],
    [
      boundary,
      Buffer.from(
        `${part('name="to"', 'ë')}${part('name="t"', '1')}${part('name="t"', '2')}${part('name="f"; filename="a.txt"\r\nContent-Type: text/csv', 'abc')}--b--\r\n`,
      ),
      { to: 'ë', t: ['1', '2'], f: { filename: 'a.txt', content_type: 'text/csv', size: 3 } },
    ],
    [
      boundary,
      latin1(`${part('name="charsets"', '{"text":"iso-8859-1"}')}${part('name="text"', 'ë')}--b--\r\n`),
      { charsets: '{"text":"iso-8859-1"}', text: 'ë' },
    ],
    [boundary, Buffer.from(`${part('name="payload"', '{"a":1}')}--b--\r\n`), { a: 1 }],
  ])('%s is read (%#)', async (type, body, parsed) => {
    expect(await read(type, body)).toMatchObject({ body: parsed, problem: undefined })
  })

  test.each<[type: string, body: Uint8Array, status: number]>([
    [FORM, latin1('first_name=Zo%EB'), 415],
    [`${FORM}; charset=utf-8`, latin1('charset=windows-1252&n=%EB'), 415],
    [`${FORM}; charset=nonsense`, latin1('a=%EB'), 415],
    [FORM, latin1('payload=%7B'), 400],
    ['application/json', latin1('{"a":"ë"}'), 415],
    ['application/json', Buffer.from('{'), 400],
    ['text/plain', latin1('ë'), 415],
    ['text/xml', Buffer.from('<a>'), 400],
    ['multipart/form-data', Buffer.from('a'), 400],
    [boundary, Buffer.from(part('name="a"', '1')), 400],
    [boundary, latin1(`${part('name="a"', 'ë')}--b--\r\n`), 415],
  ])('%s is not read (%#)', async (type, body, status) => {
    expect(await read(type, body)).toMatchObject({ body: null, problem: { status } })
  })
})
