import jsonata from 'jsonata'
import { describe, expect, it } from 'vitest'
import { BAILED_OUT, compileInline } from '../../../../src/engine/expressions/inline-evaluator.ts'
import { parseAst } from '../../../../src/engine/expressions/parse.ts'
import { registerFunctions } from '../../../../src/engine/expressions/sandbox/functions.ts'
import { MAPPING_FUNCTIONS } from '../../../../src/engine/expressions/sandbox/mapping-functions.ts'
import {
  isJsonObject,
  type Json,
  JsonNumber,
  type JsonObject,
  toDoubles,
} from '../../../../src/foundation/json/index.ts'
import { mulberry32 } from '../../../lab/faults/support/seeded-random.ts'
import { caseCount, runSeed } from '../../../support/case-count.ts'
import { type Draw, type ExtraFunctions, generateExpression, generateInput } from './mapping-generator.ts'

/** `EXPRESSIONS=1000000 TEST_SEED=7` for a longer run over other expressions. */
const EXPRESSIONS = Number(process.env.EXPRESSIONS ?? caseCount(2_000, 50_000))
const INPUTS = 500

const EXTRA: ExtraFunctions = [...MAPPING_FUNCTIONS].map(([name, { argumentsMin, argumentsMax }]) => [
  name,
  [argumentsMin, Math.min(3, argumentsMax)],
])
const EXTRA_CALL = new RegExp(`[$](?:base64url|${EXTRA.map(([name]) => name).join('|')})`)

interface Tally {
  parsed: number
  compiled: number
  answered: number
  values: number
}

describe('the inline evaluator', () => {
  it(`agrees with JSONata on ${EXPRESSIONS} generated expressions, or leaves them to the sandbox`, {
    timeout: 60_000 + EXPRESSIONS * 5,
  }, async () => {
    const random = mulberry32(runSeed())
    const draw: Draw = (below) => Math.floor(random() * below)
    const inputs = Array.from({ length: INPUTS }, () => generateInput(draw))
    const tally: Tally = { parsed: 0, compiled: 0, answered: 0, values: 0 }
    for (let count = 0; count < EXPRESSIONS; count++) {
      const input = inputs[draw(INPUTS)] ?? {}
      const bindings = { bound: inputs[draw(INPUTS)]?.a ?? null }
      await compare(tally, generateExpression(draw, EXTRA), input, bindings, draw(4) === 0)
    }
    const share = (part: number) => Number((part / tally.parsed).toFixed(3))
    expect(share(tally.answered)).toBeGreaterThan(0.4)
    expect(share(tally.values)).toBeGreaterThan(0.15)
  })
})

/** @param isRenotated the numbers of the input are written in another way, which doubles do not keep */
async function compare(tally: Tally, text: string, input: JsonObject, bindings: JsonObject, isRenotated: boolean) {
  const parsed = parseAst(text)
  if (!('tree' in parsed)) return
  tally.parsed++
  const inline = compileInline(parsed.tree)
  if (!inline) return
  tally.compiled++
  const result = inline(isRenotated ? (renotated(input) as JsonObject) : input, bindings)
  if (result === BAILED_OUT) return
  const expected = await reference(text).evaluate(structuredClone(input), structuredClone(bindings))
  const given = JSON.stringify(result === undefined || !isRenotated ? result : toDoubles(result))
  if (given !== JSON.stringify(expected)) {
    expect({ text, input, bindings, given }).toEqual({ text, input, bindings, given: JSON.stringify(expected) })
  }
  tally.answered++
  if (result !== undefined) tally.values++
}

/** JSONata with the functions of the sandbox; to register them takes longer than to parse. */
function reference(text: string): jsonata.Expression {
  const expression = jsonata(text)
  if (EXTRA_CALL.test(text)) registerFunctions(expression)
  return expression
}

function renotated(value: Json): Json {
  if (typeof value === 'number')
    return /e/.test(String(value)) ? value : new JsonNumber(Number.isInteger(value) ? `${value}.0` : `${value}0`)
  if (Array.isArray(value)) return value.map(renotated)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renotated(item)]))
}
