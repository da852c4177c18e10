import { afterAll, describe, expect, it } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import { type MappingOptions, mapRecords } from '../../../../src/engine/unified/map-records.ts'
import type { MappingScope } from '../../../../src/engine/unified/mapping.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import {
  type Json,
  JsonNumber,
  type JsonObject,
  parseJson,
  stringifyJson,
} from '../../../../src/foundation/json/index.ts'
import { CALLED_AT, planOf } from './engine-support.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const SCOPE: MappingScope = { calledAt: CALLED_AT, context: { region: 'eu' } }

async function mapOne(
  config: JsonObject,
  record: Json,
  options: MappingOptions = {},
  method = 'list',
): Promise<JsonObject> {
  const { records } = await mapRecords({ evaluator }, planOf(config, method), [record], SCOPE, options)
  return records[0] ?? {}
}

/** The fields that have a value. */
async function mapFields(fields: JsonObject, record: Json, settings: JsonObject = {}): Promise<JsonObject> {
  const mapped = await mapOne({ response: { fields: { id: '1', ...fields } }, ...settings }, record)
  const { id: _id, remote_id: _remote, custom_fields: _custom, ...rest } = mapped
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
}

describe('values of fields', () => {
  it.each<[string, Json, Json]>([
    ['name', 12, '12'],
    ['name', true, 'true'],
    ['name', '', null],
    ['name', ['Ada'], 'Ada'],
    ['age', '42', 42],
    ['age', 42.0, 42],
    ['score', '1.5', 1.5],
    ['is_active', 'TRUE', true],
    ['is_active', 0, false],
    ['status', 'open', 'open'],
    ['born_on', '2024-02-29T23:30:00-05:00', '2024-02-29'],
    ['born_on', 1704164645, '2024-01-02'],
    ['seen_at', '2024-01-02 03:04:05', '2024-01-02T03:04:05Z'],
    ['seen_at', '2024-01-02T03:04:05.123456Z', '2024-01-02T03:04:05.123456Z'],
    ['seen_at', '2024-01-02T03:04:05.25+0530', '2024-01-01T21:34:05.25Z'],
    ['seen_at', 1704164645000, '2024-01-02T03:04:05Z'],
    ['seen_at', '1704164645', '2024-01-02T03:04:05Z'],
    ['seen_at', '/Date(1704164645000+0100)/', '2024-01-02T03:04:05Z'],
    ['seen_at', 'Tue, 02 Jan 2024 03:04:05 GMT', '2024-01-02T03:04:05Z'],
    ['balance', 12.5, '12.5'],
    ['balance', '1200.00', '1200.00'],
    ['balance', 1e21, '1000000000000000000000'],
    ['balance', 1.5e-7, '0.00000015'],
    ['country', 'de', 'DE'],
    ['country', 'United States', 'US'],
    ['tags', 'one', ['one']],
    ['tags', ['a', null, 2], ['a', '2']],
    ['emails', { address: 'a@b.c' }, [{ address: 'a@b.c' }]],
    ['emails', [{ type: 'work' }, { address: null, type: 'home' }], []],
    ['owner', 7, { id: '7' }],
    ['owner', { id: null, name: null }, null],
    ['owner', { id: null, name: 'Bo' }, { id: null, name: 'Bo' }],
    ['address', { city: null }, null],
  ])('%s of %j is %j', async (field, value, wanted) => {
    const mapped = await mapFields({ [field]: 'v' }, { v: value })
    expect(mapped[field] ?? null).toEqual(wanted)
    expect(mapped._warnings).toBeUndefined()
  })

  it.each<[string, Json, string]>([
    ['name', { a: 1 }, 'type'],
    ['age', 'many', 'type'],
    ['age', 1.5, 'type'],
    ['is_active', 'perhaps', 'type'],
    ['born_on', '2023-02-30', 'format'],
    ['seen_at', 'yesterday', 'format'],
    ['seen_at', '2023-02-29T00:00:00Z', 'format'],
    ['seen_at', '2023-02-28T24:00:00Z', 'format'],
    ['seen_at', 1e300, 'format'],
    ['balance', '1,200.00', 'format'],
    ['country', 'Atlantis', 'format'],
    ['status', 'frozen', 'enum'],
    ['website', 'example', 'format'],
    ['owner', [{ id: 1 }, { id: 2 }], 'type'],
    ['address', 'Main Street', 'type'],
  ])('%s of %j is null with a warning', async (field, value, rule) => {
    const mapped = await mapFields({ [field]: 'v' }, { v: value })
    expect(mapped[field] ?? null).toBeNull()
    expect(mapped._warnings).toEqual([{ field, rule, message: expect.any(String) }])
  })

  it('carries numbers beyond doubles as their text', async () => {
    const record = parseJson('{"id": 12345678901234567890, "price": 1e400, "big": 0.10, "age": 98765432109876543210}')
    const fields = { id: 'id', balance: 'big', age: 'age', custom_fields: { price: 'price' } }
    const mapped = await mapOne({ response: { fields } }, record)
    expect(mapped).toMatchObject({ id: '12345678901234567890', remote_id: '12345678901234567890', balance: '0.10' })
    expect(mapped.age).toEqual(new JsonNumber('98765432109876543210'))
    expect(stringifyJson(mapped.custom_fields ?? null)).toBe('{"price":1e400}')
  })

  it('names a record by its id, and says when it has none', async () => {
    expect(await mapOne({ response: { fields: { id: 'key', remote_id: 'n' } } }, { key: 'a', n: 4 })).toMatchObject({
      id: 'a',
      remote_id: '4',
    })
    expect(await mapOne({ response: { fields: { id: 'key' } } }, {})).toMatchObject({
      id: null,
      _warnings: [{ field: 'id', rule: 'required', message: 'has no value' }],
    })
  })

  it('reads a record that is no object as its value', async () => {
    expect(await mapOne({ response: { fields: { id: 'value' } } }, 7)).toMatchObject({ id: '7' })
  })

  it('takes the whole record from one expression', async () => {
    const fields = '{"id": key, "name": label, "shoe": size}'
    const mapped = await mapOne({ response: { fields } }, { key: 1, label: 'Ada', size: 40 })
    expect(mapped).toMatchObject({ id: '1', name: 'Ada' })
    expect(mapped._warnings).toEqual([
      { field: 'shoe', rule: 'unknown_field', message: 'is not in the schema and is left out' },
    ])
  })

  it('leaves fields without value out of the answer to a write', async () => {
    const config = { response: { fields: { id: 'id', name: 'name' } } }
    expect(await mapOne(config, { id: 1 }, {}, 'create')).toEqual({ id: '1', remote_id: '1' })
  })
})

describe('nested maps', () => {
  const map = {
    emails: [
      { address: 'work_email', type: "'work'" },
      { address: 'home_email', type: "'home'" },
    ],
    owner: { id: 'owner_id', name: 'owner_name' },
    address: { city: 'city', street: "'unknown'" },
  }

  it('leaves out what has nothing but constants', async () => {
    expect(await mapFields(map, { home_email: 'a@b.c' })).toEqual({ emails: [{ address: 'a@b.c', type: 'home' }] })
  })

  it('keeps what has a value', async () => {
    expect(await mapFields(map, { city: 'Bern', owner_id: 3 })).toEqual({
      owner: { id: '3' },
      address: { city: 'Bern', street: 'unknown' },
    })
  })

  it('reads the context of the account', async () => {
    expect(await mapFields({ name: "$ctx.region & '/' & n" }, { n: 1 })).toEqual({ name: 'eu/1' })
  })

  it('binds every variable, so that none needs the sandbox', async () => {
    const names = ['ctx', 'query', 'filters', 'id', 'body', 'before', 'after', 'parent']
    const { traces } = await mapRecords(
      { evaluator },
      planOf({ response: { fields: Object.fromEntries(names.map((name) => [name, `$${name}.x`])) } }),
      [{}],
      SCOPE,
      { trace: true },
    )
    expect(traces?.[0]?.map(({ lane }) => lane)).toEqual(names.map(() => 'inline'))
  })
})

describe('enumerations', () => {
  const enums = { status: { map: { Active: 'open', '3': 'closed' } } }

  it.each<[string, JsonObject, Json, JsonObject]>([
    ['maps and keeps the raw value', enums, 'Active', { status: 'open', status_raw: 'Active' }],
    ['reads numbers as text', enums, 3, { status: 'closed', status_raw: '3' }],
    [
      'keeps an unknown value beside null',
      enums,
      'Paused',
      {
        status_raw: 'Paused',
        _warnings: [{ field: 'status', rule: 'enum', message: '"Paused" has no counterpart' }],
      },
    ],
    [
      'compares as written',
      enums,
      'active',
      { status_raw: 'active', _warnings: [expect.anything()] as unknown as Json },
    ],
    [
      'compares without case where it says so',
      { status: { ...enums.status, case_insensitive: true } },
      'ACTIVE',
      { status: 'open', status_raw: 'ACTIVE' },
    ],
    [
      'has a value for all others',
      { status: { ...enums.status, default: 'closed' } },
      'Paused',
      { status: 'closed', status_raw: 'Paused' },
    ],
    [
      'keeps no raw value where it says so',
      { status: { ...enums.status, keep_raw: false } },
      'Active',
      { status: 'open' },
    ],
    ['keeps unified values', enums, 'open', { status: 'open', status_raw: 'open' }],
  ])('%s', async (_what, config, value, wanted) => {
    expect(await mapFields({ status: 'v' }, { v: value }, { enums: config })).toEqual(wanted)
  })

  it('maps the values of lists, also in nested objects', async () => {
    const config = { levels: { map: { G: 'gold' } }, 'emails.type': { map: { business: 'work' } } }
    const record = { l: ['G', 'x'], e: [{ address: 'a@b.c', type: 'business' }] }
    expect(await mapFields({ levels: 'l', emails: 'e' }, record, { enums: config })).toEqual({
      levels: ['gold'],
      levels_raw: ['G', 'x'],
      emails: [{ address: 'a@b.c', type: 'work', type_raw: 'business' }],
      _warnings: [{ field: 'levels', rule: 'enum', message: '"x" has no counterpart' }],
    })
  })

  it('takes the raw value that the mapping names', async () => {
    expect(await mapFields({ status: "'open'", status_raw: 'v' }, { v: 'Live' })).toEqual({
      status: 'open',
      status_raw: 'Live',
    })
  })

  it('keeps a country that has no code beside null', async () => {
    const mapped = await mapFields({ country: 'c' }, { c: 'Atlantis' })
    expect(mapped).toMatchObject({ country_raw: 'Atlantis' })
  })
})

describe('custom fields', () => {
  const record = {
    id: 1,
    properties: { firstname: 'Ada', loyalty: 'gold', hs_id: 4, ['__proto__']: 'x' },
    list: [
      { label: 'Size', content: 40 },
      { label: '', content: 1 },
    ],
  }

  it.each<[string, JsonObject, JsonObject]>([
    ['are the keys that no field reads', { mode: 'rest', path: 'properties' }, { loyalty: 'gold', hs_id: 4 }],
    ['leave out what omit names', { mode: 'rest', path: 'properties', omit: ['hs_*', 'loyalty'] }, {}],
    [
      'are those that only names',
      { mode: 'rest', path: 'properties', only: ['loy*', 'hs_*'], omit: ['hs_*'] },
      {
        loyalty: 'gold',
      },
    ],
    ['are those of the record without a path', { mode: 'rest', omit: ['properties'] }, { list: record.list }],
    ['are a list of names and values', { mode: 'list', path: 'list', name: 'label', value: 'content' }, { Size: 40 }],
    ['are none', { mode: 'none' }, {}],
  ])('%s', async (_what, custom, wanted) => {
    const config = { response: { fields: { id: 'id', name: 'properties.firstname' } }, custom_fields: custom }
    expect((await mapOne(config, record)).custom_fields).toEqual(wanted)
  })

  it('are named by the map first', async () => {
    const fields = { id: 'id', custom_fields: { loyalty: "'platinum'" } }
    const config = { response: { fields }, custom_fields: { mode: 'rest', path: 'properties', omit: ['hs_*'] } }
    expect((await mapOne(config, record)).custom_fields).toEqual({ firstname: 'Ada', loyalty: 'platinum' })
  })
})

describe('what is added and left out', () => {
  const config = { response: { fields: { id: 'id', name: 'name', passport: 'pass' }, drop_if: 'gone = true' } }

  it('drops records by an expression', async () => {
    const { records, sources } = await mapRecords(
      { evaluator },
      planOf(config),
      [{ id: 1, gone: true }, { id: 2 }],
      SCOPE,
    )
    expect(records.map(({ id }) => id)).toEqual(['2'])
    expect(sources).toEqual([{ id: 2 }])
  })

  it('shows sensitive fields and the record of the provider on request only', async () => {
    const record = { id: 1, pass: 'P1' }
    expect(await mapOne(config, record)).not.toHaveProperty('passport')
    expect(await mapOne(config, record, { includeSensitive: true, includeRemoteData: true })).toMatchObject({
      passport: 'P1',
      remote_data: record,
    })
  })

  it('traces each expression with its layer, lane and value', async () => {
    const plan = planOf([
      {
        layer: 'shipped',
        config: { resource: 'people', method: 'list', response: { fields: { id: 'id', name: 'a' } } },
      },
      { layer: 'account', config: { response: { fields: { name: '$uppercase(b) ~> $trim' } } } },
    ])
    const { traces } = await mapRecords({ evaluator }, plan, [{ id: 1, b: ' x ' }], SCOPE, { trace: true })
    expect(traces).toEqual([
      [
        { field: 'id', expression: 'id', layer: 'shipped', lane: 'inline', value: 1 },
        {
          field: 'name',
          expression: '$uppercase(b) ~> $trim',
          layer: 'account',
          lane: expect.stringMatching(/inline|sandbox/),
          value: 'X',
        },
      ],
    ])
  })

  it('maps the other fields when an expression fails, and says why', async () => {
    const fields = { id: 'id', name: '$number(n)', age: 'age' }
    const mapped = await mapOne({ response: { fields } }, { id: 1, n: 'many', age: 3 })
    expect(mapped).toMatchObject({ id: '1', name: null, age: 3 })
    expect(mapped._warnings).toEqual([
      { field: 'name', rule: 'expression', message: expect.stringContaining('failed') },
    ])
  })

  it('ends with the failure of a sandbox that does not answer', async () => {
    const closed = createEvaluator()
    await closed[Symbol.asyncDispose]()
    const work = mapRecords({ evaluator: closed }, planOf({ response: { fields: { id: '$eval("1")' } } }), [{}], SCOPE)
    await expect(work).rejects.toThrow(Failure)
  })
})

describe('layers', () => {
  const shipped: JsonObject = {
    resource: 'people',
    method: 'list',
    response: { fields: { id: 'id', name: 'a', age: 'b' } },
  }
  const record = { id: 1, a: 'A', b: 2, tier: 'gold', planet: 'Mars', city: 'Bern' }

  async function mapLayers(layer: 'base' | 'environment' | 'account', config: JsonObject): Promise<JsonObject> {
    const plan = planOf([
      { layer: 'shipped', config: shipped },
      { layer, config },
    ])
    const { records } = await mapRecords({ evaluator }, plan, [record], SCOPE)
    return records[0] ?? {}
  }

  it('adds one field and keeps the others', async () => {
    const mapped = await mapLayers('environment', { response: { fields: { tier: 'tier' } } })
    expect(mapped).toMatchObject({ name: 'A', age: 2, tier: 'gold' })
    expect(mapped._warnings).toBeUndefined()
  })

  it('drops a field beyond the schema that the base adds', async () => {
    const mapped = await mapLayers('base', { response: { fields: { tier: 'tier' } } })
    expect(mapped).not.toHaveProperty('tier')
    expect(mapped._warnings).toEqual([
      { field: 'tier', rule: 'unknown_field', message: 'is not in the schema and is left out' },
    ])
  })

  it('removes a field with null', async () => {
    expect(await mapLayers('account', { response: { fields: { age: null } } })).toMatchObject({ name: 'A', age: null })
  })

  it('adds a field to a nested object', async () => {
    const fields = { address: { city: 'city', planet: 'planet' } }
    expect(await mapLayers('account', { response: { fields } })).toMatchObject({
      address: { city: 'Bern', planet: 'Mars' },
    })
  })
})

it('leaves the functions of JSONata their names', async () => {
  const fields = { tags: '$sort(tags, function($a, $b) { $a < $b })' }
  expect(await mapFields(fields, { tags: ['a', 'b'] })).toEqual({ tags: ['b', 'a'] })
})
