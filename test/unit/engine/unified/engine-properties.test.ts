import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEvaluator, type Evaluator } from '../../../../src/engine/expressions/index.ts'
import { type MappingPart, mergeMappings } from '../../../../src/engine/unified/index.ts'
import { mapRecords } from '../../../../src/engine/unified/map-records.ts'
import { bodySchema, recordSchema } from '../../../../src/engine/unified/model.ts'
import { type Json, JsonNumber, type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { CALLED_AT, customers, planOf } from './engine-support.ts'

const RUNS = caseCount(40, 300)
const SCOPE = { calledAt: CALLED_AT, context: {} }

let evaluator: Evaluator
beforeAll(() => {
  evaluator = createEvaluator({
    startSandbox: () => {
      throw new Error('a path was evaluated in a sandbox')
    },
  })
})
afterAll(() => evaluator[Symbol.asyncDispose]())

const ajv = addFormats.default(new Ajv.default({ strict: true, allErrors: true, strictTypes: false }))
const isRecord = ajv.compile(recordSchema(customers()))

/** Every field of the schema from the key of its name. */
const FIELD_NAMES = Object.keys(customers().schema.properties).filter((name) => name !== 'custom_fields')
const ALL_FIELDS: JsonObject = Object.fromEntries(FIELD_NAMES.map((name) => [name, name]))
const ENUMS: JsonObject = { status: { map: { A: 'open', Z: 'closed' } } }
const MAPPING: JsonObject = { response: { fields: ALL_FIELDS }, enums: ENUMS, custom_fields: { mode: 'rest' } }

async function mapAll(config: JsonObject, records: readonly Json[]): Promise<readonly JsonObject[]> {
  const mapped = await mapRecords({ evaluator }, planOf(config), records, SCOPE, { includeSensitive: true })
  return mapped.records
}

const scalar = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom('open', 'A', '2024-01-02', '2024-01-02T03:04:05+02:00', '12.50', 'DE', 'a@b.c', 'https://a.test'),
  fc.constantFrom(' https://a.test/é', 'A:', 'a:^', 'ht\ntp://a.test'),
  fc.constantFrom('1e400', '12345678901234567890', '-0', '1.10').map((text) => new JsonNumber(text)),
)
const key = fc.oneof(fc.constantFrom('id', 'name', 'address', 'type', 'city', '__proto__', 'constructor'), fc.string())
const value: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value
const record = fc.record(Object.fromEntries(FIELD_NAMES.map((name) => [name, value])), { requiredKeys: [] })

describe('for any record', () => {
  it('what is returned validates against the schema of the resource', async () => {
    await fc.assert(
      fc.asyncProperty(record, async (given) => {
        const [mapped] = await mapAll(MAPPING, [given as Json])
        const written = JSON.parse(JSON.stringify(mapped ?? null)) as Json
        expect(isRecord(written) ? [] : isRecord.errors).toEqual([])
      }),
      { numRuns: RUNS },
    )
  })

  it('an unknown value of an enumeration is null, and kept as text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 1 }), async (status) => {
        fc.pre(!['A', 'Z', 'open', 'closed'].includes(status))
        const [mapped] = await mapAll(MAPPING, [{ id: 1, status }])
        expect(mapped).toMatchObject({ status: null, status_raw: status })
      }),
      { numRuns: RUNS },
    )
  })

  it('leaving out one of its keys changes the fields of that key alone', async () => {
    await fc.assert(
      fc.asyncProperty(record, fc.constantFrom(...FIELD_NAMES), async (given, name) => {
        const { [name]: _left, ...rest } = given as JsonObject
        const [whole, part] = await mapAll(MAPPING, [given as Json, rest])
        const own = new Set([name, `${name}_raw`, 'remote_id', '_warnings'])
        const others = (mapped: JsonObject | undefined) =>
          Object.entries(mapped ?? {}).filter(([field]) => !own.has(field))
        expect(others(part)).toEqual(others(whole))
        expect(name === 'remote_id' ? null : (part?.[name] ?? null)).toBeNull()
      }),
      { numRuns: RUNS },
    )
  })
})

const leafName = fc.constantFrom('a', 'b', 'c')
const map = fc.dictionary(
  leafName,
  fc.oneof(fc.constantFrom('x', 'y', 'z'), fc.dictionary(leafName, fc.constantFrom('x', 'y'))),
  {
    noNullPrototype: true,
  },
)
const part = fc.record({
  layer: fc.constantFrom('shipped', 'base', 'environment', 'account'),
  config: map,
}) as fc.Arbitrary<MappingPart>

describe('layers', () => {
  it('merge in any grouping to the same mapping', () => {
    fc.assert(
      fc.property(part, part, part, (a, b, c) => {
        const all = mergeMappings([a, b, c])
        const left = mergeMappings([{ layer: 'base', config: mergeMappings([a, b]).config }, c])
        expect(left.config).toEqual(all.config)
        fc.pre(!Object.keys(c.config).some((name) => typeof b.config[name] !== typeof c.config[name]))
        const right = mergeMappings([a, { layer: 'base', config: mergeMappings([b, c]).config }])
        expect(right.config).toEqual(all.config)
      }),
      { numRuns: RUNS },
    )
  })

  it('name the layer of every leaf, and of nothing else', () => {
    const leavesOf = (config: Json, path: string): string[] =>
      typeof config === 'object' && config !== null && Object.keys(config).length > 0
        ? Object.entries(config).flatMap(([name, inner]) =>
            leavesOf(inner as Json, path === '' ? name : `${path}.${name}`),
          )
        : [path]
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        const { config, layers } = mergeMappings(parts)
        expect([...layers.keys()].sort()).toEqual(Object.keys(config).length === 0 ? [] : leavesOf(config, '').sort())
      }),
      { numRuns: RUNS },
    )
  })

  it('give the output of before when an override is removed', async () => {
    const shipped: MappingPart = { layer: 'shipped', config: { resource: 'people', method: 'list', ...MAPPING } }
    await fc.assert(
      fc.asyncProperty(record, fc.subarray(FIELD_NAMES), async (given, names) => {
        const fields = Object.fromEntries(names.map((name) => [name, "'overridden'"]))
        const override: MappingPart = {
          layer: 'account',
          config: { response: { fields }, enums: { status: { keep_raw: false } } },
        }
        const output = async (parts: readonly MappingPart[]) =>
          JSON.stringify((await mapRecords({ evaluator }, planOf(parts), [given as Json], SCOPE)).records[0] ?? null)
        const before = await output([shipped])
        await output([shipped, override])
        expect(await output([shipped])).toBe(before)
        const removed: MappingPart = { layer: 'account', config: {} }
        expect(await output([shipped, removed])).toBe(before)
      }),
      { numRuns: caseCount(20, 100) },
    )
  })
})

describe('hostile records', () => {
  const deep = (depth: number): Json => parseJson(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)

  it.each<[string, Json]>([
    ['keys of the prototype', parseJson('{"id": 1, "__proto__": {"name": "x"}, "constructor": 1, "toString": 2}')],
    ['very deep values', { id: 1, name: deep(200), address: deep(200), custom: deep(200) }],
    [
      'long lists',
      { id: 1, tags: Array.from({ length: 100_000 }, () => 'x'), emails: Array.from({ length: 100_000 }, () => ({})) },
    ],
    ['a long text', { id: 'x'.repeat(1_000_000), seen_at: '2'.repeat(1_000_000), balance: '9'.repeat(1_000_000) }],
    [
      'numbers beyond doubles',
      parseJson('{"id": 1e400, "age": 1e400, "score": -1e400, "balance": 1e400, "seen_at": 1e400}'),
    ],
    ['NUL', { id: '\u0000', name: '\u0000', country: '\u0000', status: '\u0000', 'a\u0000b': 1 }],
    ['keys of functions', { id: 1, name: { _jsonata_lambda: true }, owner: { _jsonata_function: true } }],
    ['scalars', 'text'],
    ['null', null],
    ['a list', [1, [2]]],
  ])('with %s are mapped', async (_what, hostile) => {
    const own = createEvaluator()
    const { records } = await mapRecords({ evaluator: own }, planOf(MAPPING), [hostile], SCOPE, {
      includeSensitive: true,
    })
    await own[Symbol.asyncDispose]()
    const written = JSON.parse(JSON.stringify(records[0] ?? null)) as JsonObject
    expect(isRecord(written) ? [] : isRecord.errors).toEqual([])
    expect(({} as Record<string, unknown>).name).toBeUndefined()
  })

  it('do not set the prototype of custom fields', async () => {
    const [mapped] = await mapAll(MAPPING, [parseJson('{"id": 1, "__proto__": {"admin": true}, "tier": 1}')])
    expect(Object.getPrototypeOf(mapped?.custom_fields)).toBe(Object.prototype)
    expect(mapped?.custom_fields).toEqual({ tier: 1 })
  })
})

it('publishes schemas that a strict validator compiles', () => {
  for (const method of ['create', 'update']) expect(() => ajv.compile(bodySchema(customers(), method))).not.toThrow()
})
