import { gzipSync } from 'node:zlib'
import { describe, expect, it, test } from 'vitest'
import { parseRequest } from '../../src/inbound-webhooks/parsed-request.ts'
import { cpuMsOfThreads } from '../support/cpu-time.ts'
import { turnsDuring } from '../support/event-loop-turns.ts'

const FORM = 'application/x-www-form-urlencoded'
const TOO_MANY = 'the body has more than 10000 form fields, or is too long'
/** Parsing the fields of any of these bodies takes a multiple of this. */
const CPU_MS_MAX = 250

function parse(body: Uint8Array, query = '', more: readonly (readonly [string, string])[] = []) {
  const headers = [['content-type', FORM], ...more] as const
  return parseRequest({ method: 'POST', path: '/hook', query, headers, body }, 'https://hooks.example.com', {
    owner: 'one',
  })
}

describe('a form', () => {
  test.each([
    ['fields', Buffer.from('a&'.repeat(524_288)), []],
    ['compressed fields', gzipSync('a&'.repeat(524_288)), [['content-encoding', 'gzip']]],
    ['compressed bytes', gzipSync(`a=${'%41'.repeat(2_000_000)}`), [['content-encoding', 'gzip']]],
  ] as const)('with too many %s is rejected before it is parsed', async (_what, body, headers) => {
    expect(await cpuMsOfThreads(() => parse(body, '', headers))).toBeLessThan(CPU_MS_MAX)
    expect(await parse(body, '', headers)).toMatchObject({ body: null, problem: TOO_MANY })
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
