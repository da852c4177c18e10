import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { RESPONSE_FORMATS } from '../../../../src/engine/formats/response/registry.ts'
import type { CallLimits } from '../../../../src/engine/proxy/request.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import type { ScriptedAnswer } from '../../../support/upstream.ts'
import { failureOf, on, startEngine } from './engine.ts'

const engine = await startEngine()
const MIB = 1024 * 1024

/** One call of a method with these settings. */
function get(method: JsonObject, answer: ScriptedAnswer, limits: CallLimits = { attemptsMax: 1 }) {
  engine.upstream.script({ request: 'GET /things/1', answer })
  return engine.call(
    { resources: { things: { get: { path: '/things/1', ...method } } } },
    { ...on('things', 'get'), limits },
  )
}

describe('the body is read by its content type', () => {
  test.each<[string, ScriptedAnswer, Json]>([
    ['JSON', { json: { a: 1 } }, { a: 1 }],
    [
      'JSON of a vendor',
      { text: '{"a":1}', headers: { 'content-type': 'application/vnd.api+json; charset=utf-8' } },
      { a: 1 },
    ],
    ['JSON called text', { text: ' [1]', headers: { 'content-type': 'text/plain' } }, [1]],
    ['JSON without a name', { text: '{"a":1}' }, { a: 1 }],
    [
      'lines of JSON',
      { text: '{"a":1}\n\n[2]\n', headers: { 'content-type': 'application/x-ndjson' } },
      [{ a: 1 }, [2]],
    ],
    ['text', { text: 'hello', headers: { 'content-type': 'text/plain' } }, 'hello'],
    ['text that only looks like JSON', { text: '{hello', headers: { 'content-type': 'text/html' } }, '{hello'],
    ['nothing', { status: 204 }, null],
  ])('%s', async (_what, answer, body) => {
    expect(await get({}, answer)).toMatchObject({ kind: 'ok', body, result: body })
  })

  test('a success that is not what it claims is a failure of the upstream', async () => {
    const answer = { text: '{"a":', headers: { 'content-type': 'application/json' } }
    expect(await failureOf(get({}, answer))).toContain('UPSTREAM_INVALID_RESPONSE')
  })

  test('an error that is not what it claims is text', async () => {
    const answer = { status: 503, text: '<html>', headers: { 'content-type': 'application/json' } }
    expect(await get({}, answer)).toMatchObject({ kind: 'upstream_error', status: 503, body: '<html>' })
  })
})

describe('text is decoded by the charset of its content type', () => {
  const latin1 = Buffer.from('{"a":"M\u00fcller"}', 'latin1')
  const typed = (type: string, bytes: Uint8Array): ScriptedAnswer => ({ bytes, headers: { 'content-type': type } })

  test.each<[string, JsonObject, ScriptedAnswer, Json]>([
    ['JSON', {}, typed('application/json; charset=iso-8859-1', latin1), { a: 'M\u00fcller' }],
    ['JSON, its charset quoted', {}, typed('application/json;charset="ISO-8859-1"', latin1), { a: 'M\u00fcller' }],
    [
      'JSON in UTF-16',
      {},
      typed('application/json; charset=utf-16le', Buffer.from('["\u20ac"]', 'utf16le')),
      ['\u20ac'],
    ],
    [
      'a byte order mark before its charset',
      {},
      typed('application/json; charset=iso-8859-1', Buffer.from('\ufeff["\u20ac"]')),
      ['\u20ac'],
    ],
    ['lines of JSON', {}, typed('application/x-ndjson; charset=latin1', latin1), [{ a: 'M\u00fcller' }]],
    ['text', {}, typed('text/plain; charset=windows-1252', Buffer.from([0x80])), '\u20ac'],
    ['text in Shift_JIS', {}, typed('text/plain; charset=Shift_JIS', Buffer.from([0x83, 0x65])), '\u30c6'],
    [
      'CSV',
      { response_format: 'csv' },
      typed('text/csv; charset=iso-8859-15', Buffer.from('a\n\xa4', 'latin1')),
      [{ a: '\u20ac' }],
    ],
    [
      'XML',
      { response_format: 'xml' },
      typed('text/xml; charset=iso-8859-1', Buffer.from('<a>\xe4</a>', 'latin1')),
      { a: '\u00e4' },
    ],
    [
      'XML, over its own declaration',
      { response_format: 'xml' },
      typed('text/xml; charset=utf-8', Buffer.from('<?xml version="1.0" encoding="latin1"?><a>\u00e4</a>')),
      { a: '\u00e4' },
    ],
  ])('%s', async (_what, method, answer, body) => {
    expect(await get(method, answer)).toMatchObject({ kind: 'ok', body })
  })

  test.each<[string, JsonObject, ScriptedAnswer, string]>([
    ['JSON that is not UTF-8', {}, typed('application/json', latin1), 'holds bytes that are not UTF-8'],
    ['text that is not UTF-8', {}, typed('text/plain', latin1), 'holds bytes that are not UTF-8'],
    ['CSV that is not UTF-8', { response_format: 'csv' }, typed('text/csv', latin1), 'holds bytes that are not UTF-8'],
    [
      'XML that is not UTF-8',
      { response_format: 'xml' },
      typed('text/xml', Buffer.from('<a>\xe4</a>', 'latin1')),
      'holds bytes that are not UTF-8',
    ],
    [
      'lines that are not UTF-8',
      { response_format: 'ndjson' },
      typed('text/plain', latin1),
      'holds bytes that are not UTF-8',
    ],
    [
      'half a character of Shift_JIS',
      {},
      typed('text/plain; charset=shift_jis', Buffer.from([0x83])),
      'holds bytes that are not SHIFT_JIS',
    ],
    [
      'an unknown charset',
      {},
      typed('application/json; charset=klingon', latin1),
      'is in the charset "klingon", which is not known',
    ],
  ])('refuses %s, and does not ask again', async (_what, method, answer, problem) => {
    const rejection = await failureOf(get(method, answer, { attemptsMax: 3 }))
    expect(rejection).toContain('UPSTREAM_INVALID_RESPONSE')
    expect(rejection).toContain(problem)
  })

  test('of an error, as far as it can be read', async () => {
    const answer = { ...typed('application/json', latin1), status: 500 }
    expect(await get({}, answer)).toMatchObject({ kind: 'upstream_error', body: '{"a":"M\ufffdller"}' })
  })
})

test('an error in JSON is read although the method expects a file', async () => {
  const answer = { status: 409, json: { error: 'path/not_found' } }
  expect(await get({ response_format: 'binary' }, answer)).toMatchObject({ body: { error: 'path/not_found' } })
})

describe('a method may say in which format its answers are', () => {
  const named: Readonly<Record<string, readonly [ScriptedAnswer, Json]>> = {
    json: [{ text: '\uFEFF{"a":1}', headers: { 'content-type': 'text/plain' } }, { a: 1 }],
    ndjson: [{ text: '{"a":1}\r\n{"a":2}' }, [{ a: 1 }, { a: 2 }]],
    text: [{ json: { a: 1 } }, '{"a":1}'],
    binary: [{ bytes: Buffer.from([0, 255, 10]), headers: { 'content-type': 'image/png' } }, 'AP8K'],
    xml: [{ text: '<a><b>1</b></a>' }, { a: { b: '1' } }],
    csv: [{ text: 'a,b\n1,x' }, [{ a: '1', b: 'x' }]],
    tsv: [{ text: 'a\tb\n1\tx' }, [{ a: '1', b: 'x' }]],
  }

  test.each(RESPONSE_FORMATS.map(({ format }) => format))('%s', async (response_format) => {
    const [answer, body] = named[response_format] ?? [{}, 'no row for this format']
    expect(await get({ response_format }, answer)).toMatchObject({ kind: 'ok', body })
  })
})

describe('rows of values', () => {
  const typed = (text: string, type = 'text/tab-separated-values; charset=utf-8'): ScriptedAnswer => ({
    text,
    headers: { 'content-type': type },
  })
  const csv = (config: JsonObject): JsonObject => ({ response_format: { format: 'csv', config } })
  const many = (rows: number) => `id;note\n${'1;5" pipe\n'.repeat(rows)}`

  test.each<[string, JsonObject, ScriptedAnswer, Json]>([
    ['tabs by the content type', {}, typed('a,b\tc\n1\t2\n'), [{ 'a,b': '1', c: '2' }]],
    ['tabs by the content type, of CSV', { response_format: 'csv' }, typed('a,b\n1,2\n'), [{ 'a,b': '1,2' }]],
    [
      'the delimiter of the definition over the content type',
      csv({ delimiter: ',' }),
      typed('a,b\n1,2\n'),
      [{ a: '1', b: '2' }],
    ],
    ['settings beside those that are guessed', csv({ columns: ['a', 'b'] }), typed('1,2\t3\n'), [{ a: '1,2', b: '3' }]],
    [
      'settings, of a body that is read in another thread',
      csv({ quote: 'none' }),
      { text: many(2_000) },
      Array.from({ length: 2_000 }, () => ({ id: '1', note: '5" pipe' })),
    ],
  ])('%s', async (_what, method, answer, body) => {
    expect(await get(method, answer)).toMatchObject({ kind: 'ok', body })
  })

  test.each([1, 2_000])('an error names the row, and is not tried again: %i rows', async (rows) => {
    const failure = get({ response_format: 'csv' }, { text: many(rows) }, { attemptsMax: 3 })
    await expect(failure).rejects.toMatchObject({
      reason: 'UPSTREAM_INVALID_RESPONSE',
      isPermanent: true,
      publicMessage:
        'the upstream answered 200 with a body that has a quote within a value in row 1 (line 2); see quote and delimiter of response_format',
    })
  })
})

describe('an answer is read up to a limit', () => {
  test.each<[string, ScriptedAnswer]>([
    ['text', { text: 'x'.repeat(2_000) }],
    ['lines of JSON', { text: '{"a":1}\n'.repeat(1_000), headers: { 'content-type': 'application/x-ndjson' } }],
    ['bytes that unfold', { bytes: gzipSync(Buffer.alloc(100_000)), headers: { 'content-encoding': 'gzip' } }],
  ])('%s', async (_what, answer) => {
    const limits = { attemptsMax: 1, responseBytesMax: 1_000 }
    expect(await failureOf(get({}, answer, limits))).toContain('UPSTREAM_INVALID_RESPONSE')
  })

  const retry = { max_attempts: 6, base: 0 }
  const file = (bytes: number): ScriptedAnswer => ({ bytes: Buffer.alloc(bytes, 'x') })

  test.each<[string, JsonObject, ScriptedAnswer, string]>([
    ['16 MiB unless the definition allows more', {}, file(16 * MIB + 1), 'larger than 16777216 bytes (16 MiB)'],
    ['what the method allows', { max_response_bytes: 1_000 }, file(1_001), 'larger than 1000 bytes: '],
    [
      'also when it unfolds to more',
      { max_response_bytes: 1_000 },
      { bytes: gzipSync(Buffer.alloc(1_001)), headers: { 'content-encoding': 'gzip' } },
      'larger than 1000 bytes: ',
    ],
  ])('%s, and is not asked for again', async (_what, method, answer, problem) => {
    const failure = get({ retry, ...method }, answer, {})
    const rejection = await failureOf(failure)
    expect(rejection).toContain(problem)
    expect(rejection).toContain('max_response_bytes')
    await expect(failure).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE', isPermanent: true })
  })

  test.each<[string, ScriptedAnswer]>([
    ['as sent', file(17 * MIB)],
    ['as decoded', { bytes: gzipSync(Buffer.alloc(17 * MIB, 'x')), headers: { 'content-encoding': 'gzip' } }],
  ])('more than 16 MiB where the method allows it, %s', async (_what, answer) => {
    const method = { max_response_bytes: 64 * MIB, response_format: 'text' }
    expect(await get(method, answer)).toMatchObject({ kind: 'ok', body: 'x'.repeat(17 * MIB) })
  })

  test('two of the largest at once of one environment; others have room, and what has ended leaves it', async () => {
    const list = { path: '/things', response_format: 'text', max_response_bytes: 64 * MIB }
    const config = { resources: { things: { list, get: list } } }
    const answerWith = (bytes: number) =>
      engine.upstream.script({ request: 'GET /things', answer: { bytes: Buffer.alloc(bytes, 'x') } })
    const open = async (environmentId: string) => {
      answerWith(17 * MIB)
      const pages = engine.pages(config, on('things', 'get'), null, { environmentId })
      await pages.next()
      return pages
    }
    const held = [await open('a'), await open('a')]
    answerWith(17 * MIB)
    const third = engine.call(config, on('things', 'get'), { environmentId: 'a' })
    await expect(third).rejects.toMatchObject({ reason: 'RATE_LIMITED', retryAfterSeconds: 5 })
    answerWith(1)
    expect(await engine.call(config, on('things', 'get'), { environmentId: 'a' })).toMatchObject({ kind: 'ok' })
    held.push(await open('b'))
    await held[0]?.next()
    await open('a').then((pages) => pages.return())
    for (const pages of held) await pages.return()
  })
})
