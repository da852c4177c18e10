import fc from 'fast-check'
import jsonata from 'jsonata'
import { describe, expect, test } from 'vitest'
import {
  listInputPaths,
  pickInputKeys,
  referencedInputKeys,
} from '../../../../src/engine/expressions/input-analysis.ts'
import { parseAst } from '../../../../src/engine/expressions/parse.ts'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { bindingsFrom, expressionText, roots } from './expression-generator.ts'

const CASES = caseCount(500, 6_000)

function readsOf(text: string): readonly string[] | undefined {
  const parsed = parseAst(text)
  const names = 'tree' in parsed ? referencedInputKeys(parsed.tree) : undefined
  return names === undefined ? undefined : [...names].sort()
}

describe('the keys an expression reads', () => {
  test.each<[string, readonly string[]]>([
    ['$match(data.items[0].title, /a/)', ['data']],
    ['$.data.a & $$.headers."retry-after"', ['data', 'headers']],
    ['$map(data, function($x, $y) { $x.id + status })', ['data', 'status']],
    ['$sort(a, function($l, $r) { $l.b < $r.b })^(c){d: e}', ['a']],
    ['($x := a; $x.b)', ['a']],
    ['$lookup(headers, "x") ~> $string', ['headers']],
    ['$now()', []],
  ])('of %s', (text, expected) => {
    expect(readsOf(text)).toEqual([...expected].sort())
  })

  test.each([
    ['the roots themselves', '$keys($)'],
    ['the roots at a distance', 'a[$$ = 1]'],
    ['a wildcard', '*.a'],
    ['descendants', '**.a'],
    ['a parent', 'a.b.%.c'],
    ['a focus', '[a@$x]'],
    ['a function that takes the context', '$lookup("a")'],
    ['a function that takes the context whole', '$string()'],
    ['a function that is not known', '$unknown(a)'],
    ['a function under a name that is known', '($count := $keys; $count())'],
    ['a parameter under such a name', 'function($count) { $count() }($keys)'],
    ['a part of a function', '$lookup(?, "a")'],
    ['a transform', '$ ~> |a|{"b": 1}|'],
    ['a predicate on the roots', '$[a = 1].b'],
  ])('may be any for %s', (_what, text) => {
    expect(readsOf(text)).toBeUndefined()
  })

  test('are all that its result depends on', async () => {
    let restricted = 0
    await fc.assert(
      fc.asyncProperty(expressionText, roots, async (text, input) => {
        const part = pickInputKeys(input, new Set(readsOf(text) ?? Object.keys(input)))
        if (Object.keys(part).length < Object.keys(input).length) restricted++
        expect(await outcome(text, part, bindingsFrom(input)), text).toEqual(
          await outcome(text, input, bindingsFrom(input)),
        )
      }),
      { numRuns: CASES },
    )
    expect(restricted).toBeGreaterThan(CASES / 12)
  })
})

async function outcome(text: string, input: Json, bindings: Record<string, unknown>): Promise<unknown> {
  try {
    return JSON.stringify(await jsonata(text).evaluate(structuredClone(input), structuredClone(bindings)))
  } catch (error) {
    return { code: (error as { code?: string }).code }
  }
}

describe('the paths of the input that an expression reads', () => {
  test.each<[string, string | undefined]>([
    ['name', 'name'],
    ['properties.email', 'properties.email'],
    ['$.properties.email & $$.a.b', 'properties.email, a.b'],
    ['a ?: b', 'a, b'],
    ['"x" & $string(id)', 'id'],
    ['emails[0].address', 'emails.address'],
    ['emails[type = "work"].address', 'emails'],
    ['emails[type = $$.kind].address', 'emails, kind'],
    ['items.{"id": id, "of": $$.owner.id}', 'items, owner.id'],
    ['$.{"id": id}', 'id'],
    ['$map(tags, function($t) { $t.name })', 'tags'],
    ['$map(tags, function($t) { $t.name & suffix })', 'tags, suffix'],
    ['tags.name ~> $join(", ")', 'tags.name'],
    ['$lookup($, "Work mail")', 'Work mail'],
    ['$lookup($$, "Work mail")', 'Work mail'],
    ['$lookup(properties, key)', 'properties, key'],
    ['$ctx.zone & $query.a', ''],
    ['items.*', 'items'],
    ['($x := a; $x.b)', 'a'],
    ['[a, {"k": b}]', 'a, b'],
    ['status in ["a", "b"]', 'status'],
    ['$', undefined],
    ['$string($)', undefined],
    ['$keys($$)', undefined],
    ['*', undefined],
    ['**.id', undefined],
    ['$uppercase()', undefined],
    ['a@$x.b', undefined],
    ['a.%.b', undefined],
    ['$each(function($v) { $v })', undefined],
    ['a b', undefined],
  ])('%s', (text, expected) => {
    expect(
      listInputPaths(text)
        ?.map((path) => path.join('.'))
        .join(', '),
    ).toBe(expected)
  })
})
