import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/base/index.ts'
import { RESPONSE_FORMATS } from '../../src/formats/index.ts'
import type { CallLimits } from '../../src/proxy/index.ts'
import type { Answer } from '../support/upstream.ts'
import { on, refusalOf, startEngine } from './engine.ts'

const engine = await startEngine()

/** One call of a method with these settings. */
function get(method: JsonObject, answer: Answer, limits: CallLimits = { attemptsMax: 1 }) {
  engine.upstream.script({ request: 'GET /things/1', answer })
  return engine.call(
    { resources: { things: { get: { path: '/things/1', ...method } } } },
    { ...on('things', 'get'), limits },
  )
}

describe('the body is read by its content type', () => {
  test.each<[string, Answer, Json]>([
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
    expect(await refusalOf(get({}, answer))).toContain('UPSTREAM_INVALID_RESPONSE')
  })

  test('an error that is not what it claims is text', async () => {
    const answer = { status: 503, text: '<html>', headers: { 'content-type': 'application/json' } }
    expect(await get({}, answer)).toMatchObject({ kind: 'upstream_error', status: 503, body: '<html>' })
  })
})

test('an error in JSON is read although the method expects a file', async () => {
  const answer = { status: 409, json: { error: 'path/not_found' } }
  expect(await get({ response_format: 'binary' }, answer)).toMatchObject({ body: { error: 'path/not_found' } })
})

describe('a method may say in which format its answers are', () => {
  const named: Readonly<Record<string, readonly [Answer, Json]>> = {
    json: [{ text: '\uFEFF{"a":1}', headers: { 'content-type': 'text/plain' } }, { a: 1 }],
    ndjson: [{ text: '{"a":1}\r\n{"a":2}' }, [{ a: 1 }, { a: 2 }]],
    text: [{ json: { a: 1 } }, '{"a":1}'],
    binary: [{ bytes: Buffer.from([0, 255, 10]), headers: { 'content-type': 'image/png' } }, 'AP8K'],
    xml: [{ text: '<a><b>1</b></a>' }, { a: { b: '1' } }],
    csv: [{ text: 'a,b\n1,x' }, [{ a: '1', b: 'x' }]],
  }

  test.each(RESPONSE_FORMATS.map(({ format }) => format))('%s', async (response_format) => {
    const [answer, body] = named[response_format] ?? [{}, 'no row for this format']
    expect(await get({ response_format }, answer)).toMatchObject({ kind: 'ok', body })
  })
})

describe('an answer is read up to a limit', () => {
  test.each<[string, Answer]>([
    ['text', { text: 'x'.repeat(2_000) }],
    ['lines of JSON', { text: '{"a":1}\n'.repeat(1_000), headers: { 'content-type': 'application/x-ndjson' } }],
    ['bytes that unfold', { bytes: gzipSync(Buffer.alloc(100_000)), headers: { 'content-encoding': 'gzip' } }],
  ])('%s', async (_what, answer) => {
    const limits = { attemptsMax: 1, responseBytesMax: 1_000 }
    expect(await refusalOf(get({}, answer, limits))).toContain('UPSTREAM_INVALID_RESPONSE')
  })
})
