import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { projectFields, successResult } from '../../../../src/tools/servers/index.ts'

const page = (count: number, length: number): JsonObject => ({
  records: Array.from({ length: count }, (_, id) => ({ id, text: 'é'.repeat(length) })),
  next_cursor: 'c',
})

describe('a result', () => {
  it.each<[string, JsonObject, number]>([
    ['many small records', page(1_000, 5), 2_000],
    ['few records with long texts', page(3, 50_000), 4_000],
    ['one record that is too long', page(1, 500_000), 1_024],
    ['one object with a long text', { id: 1, body: 'x'.repeat(100_000) }, 1_024],
    [
      'an object of many fields',
      Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`f${at}`, 'x'.repeat(300)])),
      3_000,
    ],
    ['texts that JSON escapes', { a: '\n'.repeat(5_000) }, 1_024],
  ])('of %s fits its limit in bytes and says that it was cut', (_, result, bytesMax) => {
    const { structured, text, truncated } = successResult(result, bytesMax)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(bytesMax)
    expect(JSON.parse(text)).toEqual(structured)
    expect(truncated).toBe(true)
    expect(structured).toMatchObject({ truncated: true, advice: expect.any(String) })
  })

  it('that fits is unchanged', () => {
    const result = page(3, 5)
    expect(successResult(result, 10_000)).toEqual({
      structured: result,
      text: JSON.stringify(result),
      isError: false,
      truncated: false,
    })
  })

  it('keeps the cursor of a page whose records were cut, and says how many are missing', () => {
    const { structured } = successResult(page(100, 20), 2_000)
    const kept = (structured.records as readonly Json[]).length
    expect(structured).toMatchObject({ next_cursor: 'c', advice: expect.stringContaining(`${100 - kept} records`) })
  })

  it('has no control characters, in values and names', () => {
    const { structured } = successResult({ 'a\u0007': ['b\u001b[31m', { c: '\u202ed\te' }] }, 1_000)
    expect(structured).toEqual({ a: ['b[31m', { c: 'd\te' }] })
  })
})

describe('a projection', () => {
  it.each<[Json, readonly string[], Json]>([
    [{ id: 1, a: 1, b: 2 }, ['a'], { id: 1, a: 1 }],
    [[{ id: 1, a: { b: 1, c: 2 } }], ['a.b'], [{ id: 1, a: { b: 1 } }]],
    [{ id: 1, a: [{ b: 1, c: 2 }, { b: 3 }] }, ['a.b'], { id: 1, a: [{ b: 1 }, { b: 3 }] }],
    [{ id: 1, a: { b: 1, c: 2 } }, ['a', 'a.b'], { id: 1, a: { b: 1, c: 2 } }],
    [{ id: 1, a: { b: { c: 1, d: 2 }, e: 3 } }, ['a.b.c', 'a.b', 'a.b.d.x'], { id: 1, a: { b: { c: 1, d: 2 } } }],
    [{ id: { x: 1, y: 2 } }, ['id.x'], { id: { x: 1, y: 2 } }],
    [{ a: 1 }, ['missing'], {}],
    ['text', ['a'], 'text'],
  ])('of %j to %j is %j', (value, fields, projected) => {
    expect(projectFields(value, fields)).toEqual(projected)
  })
})
