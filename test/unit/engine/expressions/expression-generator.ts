import fc from 'fast-check'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

/** Names are few, so that generated paths often hit generated data. */
const NAMES = ['a', 'b', 'c', 'status', 'items'] as const

const name = fc.constantFrom(...NAMES, '`odd name`', '"retry-after"')
const literal = fc.oneof(
  fc.constantFrom('0', '1', '-1', '2.5', '429', '1e3', '0.1', 'true', 'false', 'null', '""', '"a"', '"429"', "'é𝄞'"),
  fc.integer({ min: -5, max: 600 }).map(String),
  fc.string({ maxLength: 4 }).map((text) => JSON.stringify(text.replace(/[^\x20-\x7e]/g, ''))),
)

/** Calls of every function of the inline evaluator, and of some others, with any arguments. */
const FUNCTIONS_OF_ONE = [
  'exists',
  'boolean',
  'not',
  'type',
  'count',
  'string',
  'number',
  'abs',
  'floor',
  'ceil',
  'lowercase',
  'uppercase',
  'trim',
  'length',
  'keys',
  'sum',
  'max',
  'reverse',
  'distinct',
  'round',
  'base64encode',
  'spread',
  'merge',
  'sort',
]
const FUNCTIONS_OF_TWO = [
  'contains',
  'substringBefore',
  'substringAfter',
  'lookup',
  'substring',
  'append',
  'split',
  'join',
  'power',
  'round',
]

const OPERATORS = ['=', '!=', '<', '<=', '>', '>=', 'and', 'or', 'in', '&', '+', '-', '*', '/', '%']

/** Text of an expression in and around the grammar of the inline evaluator; most parse, some fail when evaluated. */
export const expressionText: fc.Arbitrary<string> = fc.letrec<{ expression: string; path: string }>((tie) => {
  const step = fc.oneof(
    { weight: 8, arbitrary: name },
    { weight: 2, arbitrary: fc.tuple(name, fc.integer({ min: -2, max: 2 })).map(([n, i]) => `${n}[${i}]`) },
    { weight: 1, arbitrary: fc.tuple(name, tie('expression')).map(([n, e]) => `${n}[${e}]`) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '*',
        '**',
        'a[]',
        '(a)',
        '(a; b)',
        '%',
        'a^(b)',
        'a{"k": b}',
        'a@$x',
        '{"k": a}',
        '[a]',
      ),
    },
    { weight: 2, arbitrary: fc.tuple(tie('expression'), tie('expression')).map(([x, y]) => `{"a": ${x}, "b": ${y}}`) },
  )
  const two = fc.tuple(tie('expression'), tie('expression'))
  const three = fc.tuple(tie('expression'), tie('expression'), tie('expression'))
  return {
    path: fc
      .tuple(fc.constantFrom('', '', '', '$.', '$$.', '$bound.'), fc.array(step, { minLength: 1, maxLength: 3 }))
      .map(([root, steps]) => root + steps.join('.')),
    expression: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'expression' },
      { weight: 6, arbitrary: tie('path') },
      { weight: 5, arbitrary: literal },
      { weight: 1, arbitrary: fc.constantFrom('$', '$$', '$bound', '[]', '{}', '$undefinedVariable', '[1..3]') },
      { weight: 8, arbitrary: fc.tuple(two, fc.constantFrom(...OPERATORS)).map(([[l, r], op]) => `(${l} ${op} ${r})`) },
      { weight: 1, arbitrary: tie('expression').map((e) => `-(${e})`) },
      { weight: 3, arbitrary: three.map(([c, t, e]) => `(${c} ? ${t} : ${e})`) },
      { weight: 1, arbitrary: two.map(([c, t]) => `(${c} ? ${t})`) },
      { weight: 2, arbitrary: fc.tuple(two, fc.constantFrom('?:', '??')).map(([[l, r], op]) => `(${l} ${op} ${r})`) },
      { weight: 3, arbitrary: fc.array(tie('expression'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`) },
      { weight: 3, arbitrary: two.map(([x, y]) => `{"x": ${x}, "y": ${y}}`) },
      { weight: 1, arbitrary: two.map(([x, y]) => `{"x": ${x}, ${y}: 1}`) },
      { weight: 1, arbitrary: tie('expression').map((e) => `($v := ${e}; [$v, $v])`) },
      {
        weight: 5,
        arbitrary: fc.tuple(fc.constantFrom(...FUNCTIONS_OF_ONE), tie('expression')).map(([f, e]) => `$${f}(${e})`),
      },
      {
        weight: 3,
        arbitrary: fc.tuple(fc.constantFrom(...FUNCTIONS_OF_TWO), two).map(([f, [x, y]]) => `$${f}(${x}, ${y})`),
      },
      { weight: 1, arbitrary: three.map(([x, y, z]) => `$substring(${x}, ${y}, ${z})`) },
    ),
  }
}).expression

/** Values of the variables of generated expressions. */
export function bindingsFrom(roots: JsonObject): JsonObject {
  return { bound: roots.a ?? roots }
}

/** Input that generated paths often hit: scalars, nested objects, arrays of both, odd keys and odd texts. */
export const roots: fc.Arbitrary<JsonObject> = fc.letrec<{ value: Json; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'value' },
    {
      weight: 4,
      arbitrary: fc.constantFrom<Json>(0, 1, 429, 2.5, -1, true, false, null, '', 'a', '429', ' x  y ', 'é𝄞z', '0x1f'),
    },
    { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
    { weight: 3, arbitrary: tie('object') },
    { weight: 2, arbitrary: fc.array(tie('value'), { maxLength: 3 }) },
  ),
  object: fc.dictionary(
    fc.constantFrom<string>(
      ...NAMES,
      'odd name',
      'retry-after',
      'constructor',
      '_jsonata_lambda',
      'sequence',
      'length',
      '1',
    ),
    tie('value'),
    { maxKeys: 5 },
  ),
})).object
