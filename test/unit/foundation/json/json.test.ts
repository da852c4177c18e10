import { describe, expect, it } from 'vitest'
import {
  canonicalJson,
  deepMerge,
  findUnstorable,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
  parseJson,
  toJsonbText,
} from '../../../../src/foundation/json/index.ts'

describe('deepMerge', () => {
  it.each<{ name: string; base: JsonObject; layer: JsonObject; merged: JsonObject }>([
    { name: 'adds a key', base: { a: 1 }, layer: { b: 2 }, merged: { a: 1, b: 2 } },
    { name: 'replaces a scalar', base: { a: 1 }, layer: { a: 'x' }, merged: { a: 'x' } },
    { name: 'removes a key by null', base: { a: 1, b: 2 }, layer: { a: null }, merged: { b: 2 } },
    { name: 'removes what is not there', base: {}, layer: { a: null }, merged: {} },
    { name: 'merges objects', base: { a: { b: 1, c: 2 } }, layer: { a: { c: 3 } }, merged: { a: { b: 1, c: 3 } } },
    { name: 'replaces arrays whole', base: { a: [1, 2] }, layer: { a: [3] }, merged: { a: [3] } },
    { name: 'replaces an array by an object', base: { a: [1] }, layer: { a: { b: 1 } }, merged: { a: { b: 1 } } },
    { name: 'drops nulls of a new object', base: {}, layer: { a: { b: null, c: 1 } }, merged: { a: { c: 1 } } },
    { name: 'keeps falsy values', base: { a: 1 }, layer: { a: 0, b: '', c: false }, merged: { a: 0, b: '', c: false } },
  ])('$name', ({ base, layer, merged }) => {
    const before = structuredClone({ base, layer })
    expect(deepMerge(base, layer)).toEqual(merged)
    expect({ base, layer }).toEqual(before)
  })

  it('reaches no prototype with any key', () => {
    const layer: JsonObject = JSON.parse(
      '{"__proto__": {"hit": 1}, "constructor": {"prototype": {"hit": 1}}, "a": {"__proto__": {"hit": 1}}}',
    )
    expect(deepMerge({ a: {} }, layer)).toEqual({ a: {} })
    expect(Object.hasOwn(Object.prototype, 'hit')).toBe(false)
  })
})

describe('canonicalJson', () => {
  it('is the same for equal values with any order of keys', () => {
    expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: true })).toBe(
      canonicalJson({ a: true, b: [1, { c: 'x', d: null }] }),
    )
  })

  it('differs for arrays in another order', () => {
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]))
  })
})

describe('jsonbTextOf', () => {
  it.each([
    ['{"a":[1.10,1E5,1e400]}', '{"a":[1.10,1E5,1e400]}'],
    ['{"a":[1e-400,1e99999]}', '{"a":[1e-400,"1e99999"]}'],
    ['"a\\u0000b"', '"a\ufffdb"'],
    ['"\\\\u0000 costs 1e99999"', '"\\\\u0000 costs 1e99999"'],
  ])('writes %s as %s', (text, expected) => {
    expect(toJsonbText(parseJson(text))).toBe(expected)
  })
})

describe('findUnstorable', () => {
  const nested = (depth: number): Json => (depth === 0 ? 1 : { a: nested(depth - 1) })

  it.each<{ name: string; value: Json; found: readonly (readonly [string, string])[] }>([
    { name: 'an ordinary object', value: { a: [1, 'ü', null, { b: false }] }, found: [] },
    { name: 'infinity', value: { a: [Number.POSITIVE_INFINITY] }, found: [['args.a[0]', 'finite']] },
    { name: 'not a number', value: { a: Number.NaN }, found: [['args.a', 'finite']] },
    {
      name: 'NUL in a text and in a key',
      value: { 'a\u0000': 'b\u0000' },
      found: [
        ['args.a\u0000', 'nul'],
        ['args.a\u0000', 'nul'],
      ],
    },
    { name: 'a lone surrogate', value: { a: '\ud800' }, found: [['args.a', 'surrogate']] },
    {
      name: 'a reserved key',
      value: JSON.parse('{"x": {"__proto__": 1}}'),
      found: [['args.x.__proto__', 'forbidden_key']],
    },
    { name: 'the deepest that is allowed', value: nested(JSON_DEPTH_MAX), found: [] },
    {
      name: 'one level more',
      value: nested(JSON_DEPTH_MAX + 1),
      found: [[`args${'.a'.repeat(JSON_DEPTH_MAX)}`, 'depth']],
    },
  ])('judges $name', ({ value, found }) => {
    expect(findUnstorable(value, 'args').map(({ path, rule }) => [path, rule])).toEqual(found)
  })
})
