import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exceedsJsonSize, type Json, parseJson, stringifyJson } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { turnsDuring } from '../../../support/event-loop-turns.ts'

/** Characters that are printed at once. */
const DIRECT = 512 * 1024
const LARGE: Readonly<Record<string, Json>> = {
  'a list of records': Array.from({ length: 40_000 }, (_, id) => ({ id, name: 'a name', tags: ['x', null] })),
  'a list of scalars': Array.from({ length: 400_000 }, (_, index) => index % 7),
  'an object with many members': Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`key ${at}`, [at]])),
  'a text': '"\\\u0001é😀'.repeat(DIRECT / 4),
  'texts in a list': ['x'.repeat(DIRECT), '', 'é'.repeat(DIRECT)],
  'numbers beyond doubles': parseJson(`[${'12345678901234567890,1.10,'.repeat(DIRECT / 20)}1e400]`),
  'nested lists': parseJson(`${'[1,'.repeat(200)}${JSON.stringify(Array(DIRECT).fill({}))}${']'.repeat(200)}`),
}

describe('a large value', () => {
  it.each(Object.keys(LARGE))('is printed as JSON.stringify prints it: %s', async (name) => {
    const value = LARGE[name] ?? null
    expect(String(await stringifyJson(value)) === JSON.stringify(value)).toBe(true)
  })

  it.each(Object.keys(LARGE))('lets other work run while it is printed: %s', async (name) => {
    expect(await turnsDuring(async () => stringifyJson(LARGE[name] ?? null))).toBeGreaterThan(4)
  })

  it('keeps __proto__ as a key, and leaves out members that are undefined', async () => {
    const value = JSON.parse(`{"a":{"__proto__":{"b":1}},"c":"${'x'.repeat(DIRECT)}"}`)
    const printed = await stringifyJson({ ...value, d: undefined, e: null })
    expect(String(printed)).toBe(JSON.stringify({ ...value, e: null }))
  })

  it('is printed alike wherever its large parts are', async () => {
    const filler = fc.constantFrom<Json>('x'.repeat(DIRECT), Array(DIRECT).fill(1), {}, [], 'é', 1.5, null)
    const { value } = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        filler,
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(fc.string({ maxLength: 3 }), tie('value'), { maxKeys: 4 }),
      ),
    }))
    const isAlike = async (json: Json) => String(await stringifyJson(json)) === JSON.stringify(json)
    await fc.assert(fc.asyncProperty(value, isAlike), { numRuns: caseCount(4, 20) })
  })
})

it('a small value is printed at once', () => {
  expect(stringifyJson({ a: [1, 'x'] })).toBe('{"a":[1,"x"]}')
})

it('the size of a value is the length of its text', () => {
  const isMeasured = (value: Json) => {
    const length = JSON.stringify(value).length
    return !exceedsJsonSize(value, length) && exceedsJsonSize(value, length - 1)
  }
  const keys = fc.stringMatching(/^[a-z]{0,4}$/)
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      keys,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value')),
      fc.dictionary(keys, tie('value')),
    ),
  }))
  fc.assert(fc.property(value, isMeasured))
})
