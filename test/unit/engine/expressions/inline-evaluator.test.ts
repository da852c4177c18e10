import fc from 'fast-check'
import jsonata from 'jsonata'
import { describe, expect, it } from 'vitest'
import { BAILED_OUT, compileInline } from '../../../../src/engine/expressions/inline-evaluator.ts'
import { parseAst } from '../../../../src/engine/expressions/parse.ts'
import {
  isJsonObject,
  type Json,
  JsonNumber,
  type JsonObject,
  parseJson,
  toDoubles,
} from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'
import { bindingsFrom, expressionText, roots } from './expression-generator.ts'

function fast(text: string) {
  const parsed = parseAst(text)
  return 'tree' in parsed ? compileInline(parsed.tree) : undefined
}

/** The same numbers in another notation. */
function renotated(value: Json): Json {
  if (typeof value === 'number')
    return /e/.test(String(value)) ? value : new JsonNumber(Number.isInteger(value) ? `${value}.0` : `${value}0`)
  if (Array.isArray(value)) return value.map(renotated)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renotated(item)]))
}

const LARGE_OBJECT: JsonObject = Object.fromEntries(Array.from({ length: 5_000 }, (_, key) => [`k${key}`, 1]))
const LONG_LIST: Json = Array(50_000).fill(0)

describe('the inline evaluator', () => {
  it('gives the results of JSONata, or none', async () => {
    let answered = 0
    let mapped = 0
    await fc.assert(
      fc.asyncProperty(expressionText, roots, roots, async (text, input, others) => {
        const bindings = bindingsFrom(others)
        const run = fast(text)
        const result = run?.(input, bindings)
        if (!run || result === BAILED_OUT) return
        const expected = await jsonata(text).evaluate(structuredClone(input), structuredClone(bindings))
        expect(JSON.stringify(result), text).toBe(JSON.stringify(expected))
        answered++
        if (result !== undefined) mapped++
      }),
      { numRuns: caseCount(800, 12_000) },
    )
    // Enough of what was generated must have been answered here, or the comparison says nothing.
    expect(answered).toBeGreaterThan(caseCount(100, 2_000))
    expect(mapped).toBeGreaterThan(caseCount(50, 1_000))
  })

  it('computes with doubles and returns numbers of the input with their digits', async () => {
    let answered = 0
    await fc.assert(
      fc.asyncProperty(expressionText, roots, async (text, input) => {
        const run = fast(text)
        const result = run?.(renotated(input) as JsonObject, {})
        if (!run || result === BAILED_OUT) return
        const expected = await jsonata(text).evaluate(structuredClone(input))
        const doubles = result === undefined ? undefined : toDoubles(result)
        expect(JSON.stringify(doubles), text).toBe(JSON.stringify(expected))
        answered++
      }),
      { numRuns: caseCount(400, 6_000) },
    )
    expect(answered).toBeGreaterThan(caseCount(50, 1_000))
  })

  it.each([
    ['a', '12345678901234567890'],
    ['$.b[1]', '1.0'],
    ['{"x": a, "y": b}', '{"x":12345678901234567890,"y":[1.10,1.0,-0]}'],
    ['b.{"n": $}', '[{"n":1.10},{"n":1.0},{"n":-0}]'],
    ['[b, a]', '[1.10,1.0,-0,12345678901234567890]'],
    ['$exists(a) ? a : 0', '12345678901234567890'],
    ['$lookup($, "a")', '12345678901234567890'],
    ['b[1] = 1 and b[0] < 1.2 and 1.1 in b', 'true'],
    ['b[2] ? "yes" : "no"', '"no"'],
    ['$type(a)', '"number"'],
    ['b[0] * 2', '2.2'],
    ['"n" & b[0]', '"n1.1"'],
    ['a - 12345678901234567891', '0'],
  ])('%s is %s', (text, expected) => {
    const input = parseJson('{"a":12345678901234567890,"b":[1.10,1.0,-0]}') as JsonObject
    expect(JSON.stringify(fast(text)?.(input))).toBe(expected)
  })

  it.each([
    'status = 429',

    '$.response.body.items',
    '$$.response.headers."retry-after"',
    'response.body.items[0].id',
    'response.body.items[-1]',
    '$number(headers.`retry-after`) * 1000',
    'status >= 400 and status != 404 ? {"status": status, "message": body.error.message ?? "failed", "tags": [1, "a"]}',
    '"Bearer " & $string(token)',
    'type in ["a", "b"] or $contains(name, "x")',
    '$exists(body.next) ? body.next : null',
    '(a ?: b)',
    '$previous.items[0].id',
    '"Basic " & $base64encode(user & ":" & password)',
    'data.items.{"id": id, "by": user.login}',
    'data.repository.issues.edges.node',
    'items.{"id": id}.id',
    'emails[type = "work"].address',
    'items[open][0].id',
    'items[0][0]',
    '$previous.users[id = $$.owner_id].name',
    '$map(items, function($i) { {"id": $i.id, "of": $$.id} })',
    '$filter(items, function($i) { $i.open and (count + 1) % 3 > 0 }).id',
    'tags.$uppercase(name)',
  ])('takes %s', (text) => {
    expect(fast(text)).toBeTypeOf('function')
  })

  it.each([
    ['lambda that is a value', '($f := function($x) { $x }; $f(a))'],
    ['lambda of three parameters', '$map(items, function($i, $n, $all) { $i })'],
    ['assignment', '($x := a; $x.b)'],
    ['chain', 'tags ~> $join(", ")'],
    ['kept list', 'items[]'],
    ['negation', '-(a)'],
    ['selection of what a loop gives', '$map(items, function($i) { $i })[0]'],
    ['sequence that ends a lambda', '$map(items, function($i) { $map($i.a, function($a) { $a }) })'],
    ['several expressions', '(a; b)'],
    ['regular expression', '$contains(a, /b/)'],
    ['range', '[1..3]'],
    ['wildcard', 'a.*'],
    ['descendants', 'a.**'],
    ['parent', 'a.b.%'],
    ['sort', 'items^(id)'],
    ['grouping', 'items{id: name}'],
    ['mapping to lists', 'items.[id, name]'],
    ['kept value', '$x[]'],
    ['focus', 'items@$i.id'],
    ['position', 'items#$i.id'],
    ['transform', '$ ~> |a|{"b": 1}|'],
    ['chain to a value', 'a ~> (b)'],
    ['partial application', '$substring(?, 0, 1)'],
    ['computed key', '{a: 1}'],
    ['key twice', '{"a": 1, "a": 2}'],
    ['reserved key', '{"__proto__": 1}'],
    ['function that is not linear', '$sort(items)'],
    ['function with its context left out', '$uppercase()'],
    ['many nodes', `[${Array(1_024).fill('a').join()}]`],
  ])('does not take a %s', (_kind, text) => {
    expect(parseAst(text)).toHaveProperty('tree')
    expect(fast(text)).toBeUndefined()
  })

  it.each<[string, string, JsonObject]>([
    ['an array in an array', 'a[0]', { a: [[1]] }],
    ['an array among the elements', 'a.b', { a: [[{ b: 1 }], { b: 2 }] }],
    ['two objects compared', 'a = b', { a: {}, b: {} }],
    ['values of two types ordered', 'a < b', { a: 1, b: 'x' }],
    ['a missing list that a predicate takes', 'a[1 = 1]', {}],
    ['a predicate that fails within one of a missing list', 'a[a[$uppercase(5)].b]', {}],
    ['an element that poses as a stream', 'a.{"b": c}', { a: [{ tupleStream: true }] }],
    ['a text as a number', 'a + 1', { a: 'x' }],
    ['a number out of range', 'a * a', { a: 1e200 }],
    ['an object as a text', 'a & "x"', { a: {} }],
    ['a text that is no number', '$number(a)', { a: '0x10' }],
    ['a variable that is not bound', '$x.a', {}],
    ['data that poses as a function', 'a.b', { a: { _jsonata_lambda: true, b: 1 } }],
    ['an argument that poses as a function', '$exists(a)', { a: { _jsonata_lambda: true } }],
    ['data that poses as a stream', '{"a": 1}', { tupleStream: true }],
  ])('hands over at %s', (_what, text, input) => {
    expect(fast(text)?.(input)).toBe(BAILED_OUT)
  })

  it.each<[string, string, JsonObject]>([
    ['texts that grow', Array.from({ length: 120 }, () => 'a').join(' & '), { a: 'x'.repeat(1_000) }],
    ['one long text again and again', `[${Array(60).fill('$trim(a)').join(', ')}]`, { a: 'x'.repeat(50_000) }],
    ['one long list again and again', `[${Array(60).fill('1 in a').join(', ')}]`, { a: Array(50_000).fill(0) }],
    ['one large object again and again', `[${Array(60).fill('$not(a)').join(', ')}]`, { a: LARGE_OBJECT }],
    ['one part of the input in many places', `[${Array(60).fill('{"k": a}').join(', ')}]`, { a: LARGE_OBJECT }],
    ['one part of the input in every result', '$map(a, function($v) { $$.b })', { a: LONG_LIST, b: LARGE_OBJECT }],
    ['one element in every result', 'a.($$.a.{"k": b})', { a: Array(600).fill({ b: Array(500).fill(1) }) }],
    ['a text that is replaced by longer ones', '$replace(a, "x", a)', { a: 'x'.repeat(2_000) }],
    ['predicates in predicates', 'a[b in $$.a[b in $$.a[b in $$.a.b].b].b]', { a: Array(300).fill({ b: 1 }) }],
    ['one list for every element', 'a[b in $$.a.b]', { a: Array(2_000).fill({ b: 'x' }) }],
    [
      'lambdas in lambdas',
      '$map(a, function($v) { $map($$.a, function($w) { $v.b & $w.b }) = 1 })',
      { a: Array(2_000).fill({ b: 'x' }) },
    ],
    ['one long text in every element', 'a.{"k": $$.b}', { a: Array(50_000).fill({}), b: 'x'.repeat(50_000) }],
    ['one object in every element', 'a.{"k": $$.b}', { a: Array(50_000).fill({}), b: LARGE_OBJECT }],
    ['a long key in every element', `a.{"${'k'.repeat(9_000)}": 1}`, { a: Array(50_000).fill({}) }],
    [
      'a field of every element in many places',
      `a.{${Array.from({ length: 60 }, (_, k) => `"${k}": b`).join()}}`,
      { a: Array(5_000).fill({ b: [] }) },
    ],
    ['elements of elements', 'a.{"k": $$.a.{"l": $$.a.{"m": 1}}}', { a: Array(1_000).fill({}) }],
    ['one list in many places', `[${Array(60).fill('a').join(', ')}]`, { a: Array(50_000).fill(0) }],
  ])('hands over before it has spent much on %s', (_what, text, input) => {
    const run = fast(text)
    expect(run).toBeDefined()
    expect(cpuMsOf(() => expect(run?.(input)).toBe(BAILED_OUT))).toBeLessThan(100)
  })

  it('returns parts of the input as they are', () => {
    const items = [{ id: 1 }]
    expect(fast('$.data.items')?.({ data: { items } })).toBe(items)
  })
})
