import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createEvaluator, type Evaluator } from '../../../../src/engine/expressions/index.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'

const inline = createEvaluator({ poolSize: 2 })
const sandboxed = createEvaluator({ poolSize: 2, isInline: false })
afterAll(async () => {
  for (const each of [inline, sandboxed]) await each[Symbol.asyncDispose]()
})

/** The result as text, or the code of the failure. */
async function textOf(evaluator: Evaluator, expression: string, input: JsonObject): Promise<string> {
  try {
    return JSON.stringify(await evaluator.evaluate(expression, input)) ?? 'nothing'
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return error.metadata.code ?? error.reason
  }
}

const objectOf = (text: string) => parseJson(text) as JsonObject

/** Numbers that doubles do not hold, beside those that they do. Not whole ones in another notation, such as `1.0`. */
const numberText = fc.oneof(
  fc.bigInt({ min: 2n ** 53n, max: 10n ** 30n }).map(String),
  fc.bigInt({ min: -(10n ** 20n), max: -(2n ** 53n) }).map(String),
  fc.tuple(fc.nat({ max: 999 }), fc.bigInt({ min: 1n, max: 10n ** 22n })).map(([whole, part]) => `${whole}.${part}1`),
  fc.integer().map(String),
)
const record = fc.record({ id: numberText, other: numberText, name: fc.stringMatching(/^[a-z]{0,8}$/) })
const input = fc.tuple(fc.array(record, { maxLength: 6 }), numberText).map(([records, id]) => {
  const items = records.map(({ id, other, name }) => `{"id":${id},"more":{"other":${other}},"name":"${name}"}`)
  return `{"id":${id},"items":[${items.join()}]}`
})

const value: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('id', 'more', 'more.other', '$', '$$.id', '[id, more.other]', 'name & "!"', '$uppercase(name)'),
  fc.constantFrom('name = "a" ? id : more.other', '{"deep": [{"id": id}]}', '$exists(name) ? id'),
)
/** Expressions that pass numbers on and compute with none. */
const expression = fc.oneof(
  fc.tuple(value, value).map(([one, two]) => `items.{"one": ${one}, "two": ${two}}`),
  value.map((each) => `items.(${each})`),
  value.map((each) => `{"first": items[0].(${each}), "all": items, "id": id}`),
  value.map((each) => `items[name != ""].{"one": ${each}}`),
)

describe('a number that an expression passes on', () => {
  it('is the same in the sandbox and inline, or the sandbox says that it cannot tell', async () => {
    const property = fc.asyncProperty(expression, input, async (text, json) => {
      const [one, two] = await Promise.all([inline, sandboxed].map((each) => textOf(each, text, objectOf(json))))
      if (two !== 'NUMBER_AMBIGUOUS') expect(two).toBe(one)
    })
    await fc.assert(property, { numRuns: caseCount(200, 5_000) })
  })

  it.each([3_000, 6_000])('is the same with %i items', async (count) => {
    const ids = Array.from({ length: count }, (_, index) => `${12345678901234567890n + BigInt(index) * 4_096n}`)
    const items = ids.map((id) => `{"id":${id},"name":"${'n'.repeat(60)}"}`)
    const text = await textOf(inline, 'items.{"id": id, "name": name & "!"}', objectOf(`{"items":[${items.join()}]}`))
    expect([...text.matchAll(/"id":(\d+)/g)].map(([, id]) => id)).toEqual(ids)
  })

  it.each<[string, string, string, string]>([
    [
      'a filter',
      '$filter(items, function($i) { $match($i.name, /a/) }).id',
      '12345678901234567890',
      '12345678901234567890',
    ],
    ['a sort', 'items^(name).id', '[12345678901234567890,9007199254740993]', '[12345678901234567890,9007199254740993]'],
    ['a fraction', 'items^(name).id', '[52.520006599999998765,1.10]', '[52.520006599999998765,1.10]'],
    ['a sum', '$sum(items.id) + 0 * $length($now())', '[9007199254740993,8]', '9007199254741000'],
    ['ids that are one double', 'items^(name).id', '[9007199254740993,9007199254740992]', 'NUMBER_AMBIGUOUS'],
    ['fractions that are one double', 'items^(name).id', '[1.10,1.1]', '[1.1,1.1]'],
    ['a count beside 1.0', '{"n": $count(items^(name)), "id": items.id}', '[1.0]', '{"n":1,"id":1}'],
  ])('through %s', async (_, text, ids, expected) => {
    const list = ids.replaceAll(/[[\]]/g, '').split(',')
    const items = list.map((id, index) => `{"id":${id},"name":"a${index}"}`)
    expect(await textOf(inline, text, objectOf(`{"items":[${items.join()}]}`))).toBe(expected)
  })
})
