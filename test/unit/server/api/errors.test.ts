import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorReasonSchema } from '../../../../gen/patchbay/v1/error_reason_pb.ts'
import { describeJsonError } from '../../../../src/server/api/messages/json-text.ts'
import { type Harness, startHarness } from './support/harness.ts'
import { AS_ENVIRONMENT, http1 } from './support/http.ts'
import { connectOutcome } from './support/protocols.ts'

const CONTRACT = readFileSync(join(import.meta.dirname, '../../../../proto/patchbay/v1/error_reason.proto'), 'utf8')
const RPC = '/widget.v1.WidgetService/Create'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness[Symbol.asyncDispose]())

type Send = (
  body: Buffer,
) => Promise<{ readonly reason: string | undefined; readonly fields: readonly string[]; message: string }>

const post = (path: string, contentType: string, body: Uint8Array) =>
  http1(harness.baseUrl, path, { method: 'POST', headers: { ...AS_ENVIRONMENT, 'content-type': contentType }, body })

/** Every protocol that carries JSON as the client wrote it. */
const SENDERS: Readonly<Record<string, Send>> = {
  async REST(body) {
    const { json } = await post('/widget', 'application/json', body)
    const { message, details } = json.error as unknown as {
      message: string
      details: { reason: string; field_violations?: { field: string }[] }[]
    }
    const fields = details[1]?.field_violations?.map(({ field }) => field) ?? []
    return { reason: details[0]?.reason ?? '', fields, message }
  },
  async Connect(body) {
    const outcome = connectOutcome(await post(RPC, 'application/json', body))
    if (outcome.ok) throw new Error('not refused')
    const { reason, violations, message } = outcome.error
    return { reason, fields: violations.map(({ field }) => field), message }
  },
}

interface Row {
  readonly what: string
  readonly body: string | Buffer
  /** The field that is named, or undefined when the body cannot be read at all. */
  readonly field?: string
  /** Words of the contract that cover the case. */
  readonly words: string
}

const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

const FIELD_ROWS: readonly Row[] = [
  { what: 'an unknown field', body: '{"name":"a","nam":1}', field: 'nam', words: 'unknown' },
  {
    what: 'an unknown field inside',
    body: '{"name":"a","parts":[{"name":"p","x":1}]}',
    field: 'parts[0].x',
    words: 'unknown',
  },
  { what: 'a value of another type', body: '{"name":7}', field: 'name', words: 'of another type' },
  { what: 'a value against a rule', body: '{"name":""}', field: 'name', words: 'against a rule' },
  {
    what: 'a number that is not finite',
    body: '{"name":"a","attributes":{"n":1e999}}',
    field: 'attributes.n',
    words: 'not finite',
  },
  {
    what: 'a number that is not finite in a typed field',
    body: '{"name":"a","size":1e999}',
    field: 'size',
    words: 'of another type',
  },
  { what: 'NUL in a text', body: '{"name":"a\\u0000"}', field: 'name', words: 'NUL' },
  {
    what: 'NUL in a free-form text',
    body: '{"name":"a","attributes":{"n":"\\u0000"}}',
    field: 'attributes.n',
    words: 'NUL',
  },
  {
    what: 'a key that reaches prototypes',
    body: '{"name":"a","attributes":{"__proto__":1}}',
    field: 'attributes.__proto__',
    words: '__proto__',
  },
  {
    what: 'nesting beyond 32 levels',
    body: `{"name":"a","attributes":${nested(40)}}`,
    field: `attributes${'.a'.repeat(32)}`,
    words: 'deeper than 32',
  },
]

const BODY_ROWS: readonly Row[] = [
  { what: 'a text that is not JSON', body: '{"name":', words: 'not JSON' },
  { what: 'NaN', body: '{"name":"a","attributes":{"n":NaN}}', words: 'not JSON' },
  { what: 'bytes that are not UTF-8', body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), words: 'not UTF-8' },
  { what: 'a key given twice', body: '{"name":"a","name":"b"}', words: 'one key twice' },
  { what: 'a list', body: '[1]', words: 'not an object' },
  { what: 'nesting beyond 100 levels', body: `{"name":"a","attributes":${nested(200)}}`, words: '100 levels' },
]

describe.each(Object.entries(SENDERS))('%s', (_, send) => {
  it.each(FIELD_ROWS)('answers INVALID_FIELD and names the field: $what', async ({ body, field }) => {
    const { reason, fields } = await send(Buffer.from(body))
    expect([reason, fields]).toEqual(['INVALID_FIELD', [field]])
  })

  it.each(BODY_ROWS)('answers MALFORMED_BODY and no field: $what', async ({ body }) => {
    const { reason, fields } = await send(Buffer.from(body))
    expect([reason, fields]).toEqual(['MALFORMED_BODY', []])
  })

  it('says where a text stops being JSON, and what was met there', async () => {
    const { message } = await send(Buffer.from('{"name": "a",\n "tags": [1, }'))
    expect(message).toBe('the body is not valid JSON: line 2, column 14: expected a value, met "}"')
  })
})

describe('the contract', () => {
  const commentOf = (reason: string) => {
    const before = CONTRACT.split(`  ERROR_REASON_${reason} =`)[0] ?? ''
    return before.slice(before.lastIndexOf('\n\n')).replace(/\s*\/\/ ?/g, ' ')
  }

  it.each([
    ...FIELD_ROWS.map((row) => ({ ...row, reason: 'INVALID_FIELD', other: 'MALFORMED_BODY' })),
    ...BODY_ROWS.map((row) => ({ ...row, reason: 'MALFORMED_BODY', other: 'INVALID_FIELD' })),
  ])('counts $what to $reason and to no other reason', ({ reason, other, words }) => {
    expect(ErrorReasonSchema.values.map(({ name }) => name)).toContain(`ERROR_REASON_${reason}`)
    expect(commentOf(reason)).toContain(words)
    expect(commentOf(other)).not.toContain(words)
  })
})

describe('a position in JSON', () => {
  it.each([
    ['', 'line 1, column 1: expected a value, met the end of the text'],
    ['{', 'line 1, column 2: expected a key in double quotes, met the end of the text'],
    [`"${'\\n'.repeat(2_500)}\\x"`, 'line 1, column 5002: expected an escape of JSON, met "\\"'],
    ['{"a"}', 'line 1, column 5: expected ":", met "}"'],
    ['{"a":1,}', 'line 1, column 8: expected a key in double quotes, met "}"'],
    ["{'a':1}", 'line 1, column 2: expected a key in double quotes, met "\'"'],
    ['{"a":1 "b":2}', 'line 1, column 8: expected "," or "}", met """'],
    ['[1,]', 'line 1, column 4: expected a value, met "]"'],
    ['[1 2]', 'line 1, column 4: expected "," or "]", met "2"'],
    ['[01]', 'line 1, column 3: expected "," or "]", met "1"'],
    ['[1', 'line 1, column 3: expected "," or "]", met the end of the text'],
    ['"abc', 'line 1, column 5: expected a closing quote, met the end of the text'],
    ['"a\tb"', 'line 1, column 3: expected a closing quote, met U+0009'],
    ['"a\\x"', 'line 1, column 3: expected an escape of JSON, met "\\"'],
    ['{}\n{}', 'line 2, column 1: expected nothing more, met "{"'],
    ['\ufeff{}', 'line 1, column 1: expected a value, met U+FEFF'],
    ['{\r\n  "a": tru\r\n}', 'line 2, column 8: expected a value, met "t"'],
    ['[1, NaN]', 'line 1, column 5: expected a value, met "N"'],
    ['[-]', 'line 1, column 2: expected a value, met "-"'],
    ['[1.]', 'line 1, column 3: expected "," or "]", met "."'],
  ])('of %j is exact', (text, expected) => {
    expect(() => JSON.parse(text)).toThrow()
    expect(describeJsonError(text)).toBe(expected)
  })
})
