import { afterAll, describe, expect, it } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import {
  callUnified,
  checkModel,
  compileMapping,
  mergeMappings,
  parseModel,
} from '../../../../src/engine/unified/index.ts'
import { bodySchema } from '../../../../src/engine/unified/model.ts'
import { catchFailure, Failure } from '../../../../src/foundation/base/index.ts'
import { type Json, type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { ACCOUNT, CLOCK, type SeenRequest, SHOP_PLAN, scriptedProxy } from './engine-support.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const AMOUNT: JsonObject = { type: 'string', format: 'decimal' }
const LINE: JsonObject = { type: 'object', properties: { debit: AMOUNT, credit: AMOUNT, text: { type: 'string' } } }

/** A model of entries whose lines have these settings. */
function booksWith(lines: JsonObject): JsonObject {
  return {
    name: 'books',
    $defs: { line: LINE },
    resources: { entries: { methods: ['create', 'update'], schema: { type: 'object', properties: { lines } } } },
  }
}

const LINES: JsonObject = { type: 'array', items: { $ref: '#/$defs/line' }, 'x-balanced': ['debit', 'credit'] }

function entries() {
  const resource = parseModel(booksWith(LINES)).resources.get('entries')
  if (resource === undefined) throw new Error('the model has no entries')
  return resource
}

/** What a write of lines sends, or why it sends nothing. */
async function write(method: string, lines: Json): Promise<{ problems: string[]; seen: readonly SeenRequest[] }> {
  const { proxy, seen } = scriptedProxy(evaluator, [{ body: { id: 1 } }])
  const config = {
    resource: 'people',
    method,
    request: { body: { lines: 'lines' } },
    response: { fields: { id: 'id' } },
  }
  const mapping = compileMapping(mergeMappings([{ layer: 'shipped', config }]), entries(), method)
  const target = { plan: SHOP_PLAN, access: ACCOUNT, mapping }
  const outcome = await catchFailure(() =>
    callUnified({ proxy, evaluator, clock: CLOCK }, target, { id: '1', body: { lines } }),
  )
  const problems =
    outcome instanceof Failure ? outcome.violations.map(({ field, description }) => `${field} ${description}`) : []
  return { problems, seen }
}

describe('amounts that must balance', () => {
  it.each<[string, Json]>([
    ['in one line each', [{ debit: '10.00' }, { credit: '10' }]],
    ['with a double that does not add up', [{ debit: '0.1' }, { debit: '0.2' }, { credit: '0.3' }]],
    ['below the precision of a double', [{ debit: '9007199254740993.01' }, { credit: '9007199254740993.01' }]],
    ['as numbers', parseJson('[{"debit":9007199254740993.01},{"credit":"9007199254740993.01"}]')],
    ['with null and without amount', [{ debit: '5', credit: null }, { text: 'Remark' }, { credit: '5', debit: null }]],
    ['below zero', [{ debit: '-5.5' }, { credit: '-5.50' }]],
    ['in no lines', []],
  ])('%s are sent', async (_what, lines) => {
    expect(await write('create', lines)).toMatchObject({ problems: [], seen: [{ method: 'POST' }] })
  })

  it.each<[string, Json, string]>([
    ['differ', [{ debit: '10' }, { credit: '9.995' }], '10.000 is not 9.995'],
    ['have one side', [{ debit: '0.05' }], '0.05 is not 0.00'],
    [
      'differ in the last digit',
      [{ debit: '9007199254740993' }, { credit: '9007199254740992' }],
      '9007199254740993 is not 9007199254740992',
    ],
    ['differ in sign', [{ debit: '-0.5' }, { credit: '0.5' }], '-0.5 is not 0.5'],
  ])('that %s are not', async (_what, lines, sums) => {
    const wanted = [`body.lines must have the same sum of debit and credit: ${sums}`]
    expect(await write('create', lines)).toEqual({ problems: wanted, seen: [] })
    expect(await write('update', lines)).toEqual({ problems: wanted, seen: [] })
  })

  it('are not compared when one is no amount', async () => {
    const { problems } = await write('create', [{ debit: '1,5' }, { credit: '2' }])
    expect(problems).toEqual(['body.lines[0].debit must be a decimal number, such as 12.50'])
  })

  it.each<[string, JsonObject, string[]]>([
    ['found correct', LINES, []],
    ['for lists only', { ...AMOUNT, 'x-balanced': ['debit', 'credit'] }, ['type']],
    ['decimals of the entries', { ...LINES, 'x-balanced': ['debit', 'text'] }, ['unknown']],
    ['decimals that exist', { ...LINES, items: LINE, 'x-balanced': ['debt', 'credit'] }, ['unknown']],
    ['two', { ...LINES, 'x-balanced': ['debit'] }, ['min']],
  ])('are %s in a model', (_what, lines, rules) => {
    expect(checkModel(booksWith(lines), 'config').map(({ rule }) => rule)).toEqual(rules)
  })

  it('are no word of the published schema', () => {
    expect(JSON.stringify(bodySchema(entries(), 'create'))).not.toContain('x-balanced')
  })
})
