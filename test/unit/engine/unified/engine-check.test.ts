import { describe, expect, it } from 'vitest'
import { checkMapping } from '../../../../src/engine/unified/check-mapping.ts'
import {
  checkMappingLayer,
  checkModel,
  compileMapping,
  mergeMappings,
  parseModel,
} from '../../../../src/engine/unified/index.ts'
import { bodySchema, recordSchema } from '../../../../src/engine/unified/model.ts'
import { catchFailure, Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { customers, SHOP_MODEL, SHOP_PLAN } from './engine-support.ts'

function short(violations: readonly { readonly field: string; readonly rule: string }[]): string[] {
  return violations.map(({ field, rule }) => `${field} ${rule}`)
}

/** The model with another schema of customers. */
function modelWith(properties: JsonObject, defs: JsonObject = {}): JsonObject {
  const schema = { type: 'object', properties }
  return { name: 'shop', $defs: defs, resources: { customers: { methods: ['list'], schema } } }
}

describe('a model', () => {
  it('is found correct', () => {
    expect(checkModel(SHOP_MODEL, 'config')).toEqual([])
  })

  it.each<[string, JsonObject, string[]]>([
    ['an unknown setting', { ...SHOP_MODEL, colour: 1 }, ['config.colour unknown_field']],
    ['no resources', { name: 'shop' }, ['config.resources required']],
    ['a name that is none', { ...modelWith({ a: { type: 'string' } }), name: 'My shop' }, ['config.name pattern']],
    [
      'a field that every record has',
      modelWith({ id: { type: 'string' } }),
      ['config.resources.customers.schema.properties.id reserved'],
    ],
    [
      'a field without type',
      modelWith({ a: { description: 'x' } }),
      ['config.resources.customers.schema.properties.a.type required'],
    ],
    [
      'a list without items',
      modelWith({ a: { type: 'array' } }),
      ['config.resources.customers.schema.properties.a.items required'],
    ],
    [
      'an enumeration of numbers',
      modelWith({ a: { type: 'integer', enum: ['1'] } }),
      ['config.resources.customers.schema.properties.a.enum type'],
    ],
    [
      'a reference to nothing',
      modelWith({ a: { $ref: '#/$defs/b' } }),
      ['config.resources.customers.schema.properties.a.$ref unknown'],
    ],
    [
      'a reference to itself',
      modelWith({ a: { $ref: '#/$defs/b' } }, { b: { type: 'object', properties: { c: { $ref: '#/$defs/b' } } } }),
      ['config.$defs.b.properties.c.$ref cycle', 'config.resources.customers.schema.properties.a.$ref cycle'],
    ],
    [
      'required fields that it lacks',
      {
        name: 'shop',
        resources: {
          a: { methods: ['list'], schema: { type: 'object', properties: { b: { type: 'string' } }, required: ['c'] } },
        },
      },
      ['config.resources.a.schema.required required'],
    ],
    [
      'shared schemas that double at each level',
      modelWith(
        { a: { $ref: '#/$defs/d0' } },
        Object.fromEntries(
          Array.from({ length: 100 }, (_, at) => {
            const next: JsonObject = at === 99 ? { type: 'string' } : { $ref: `#/$defs/d${at + 1}` }
            return [`d${at}`, { type: 'object', properties: { b: next, c: next } }]
          }),
        ),
      ),
      ['config.resources.customers.schema max'],
    ],
    ['too many characters', { ...SHOP_MODEL, description: 'x'.repeat(600_000) }, ['config max']],
  ])('with %s is not', (_what, document, wanted) => {
    expect(short(checkModel(document, 'config'))).toEqual(wanted)
  })

  it('that is wrong is not parsed', async () => {
    const failure = await catchFailure(async () => parseModel({ name: 'shop' }))
    expect(failure).toBeInstanceOf(Failure)
    expect(failure).toMatchObject({ reason: 'DEFINITION_INVALID' })
  })

  it('has its shared schemas in place, with the keys beside their names', () => {
    expect(customers().schema.properties.owner).toEqual({
      type: 'object',
      properties: { id: { type: 'string' }, name: { type: 'string' } },
      required: ['id'],
      'x-reference': 'directory/users',
    })
  })

  it('publishes what records look like and what a write may have', () => {
    const record = recordSchema(customers())
    const create = bodySchema(customers(), 'create')
    expect(record).toMatchObject({
      properties: {
        id: { type: ['string', 'null'] },
        status: { type: ['string', 'null'], enum: ['open', 'closed', null] },
        status_raw: { type: ['string', 'null'] },
        levels_raw: { type: ['array', 'null'] },
        balance: { pattern: expect.any(String) },
        _warnings: { type: 'array' },
      },
    })
    expect(record).not.toHaveProperty('required')
    expect(create).toMatchObject({ required: ['name'], additionalProperties: false })
    expect(create).not.toHaveProperty('properties.id')
    expect(create).not.toHaveProperty('properties.seen_at')
    expect(bodySchema(customers(), 'update')).not.toHaveProperty('required')
  })
})

const LIST: JsonObject = { resource: 'people', method: 'list', response: { fields: { id: 'id', name: 'label' } } }

describe('the mapping of a method', () => {
  function check(config: Json, method = 'list'): string[] {
    return short(checkMapping(config, { resource: customers(), method, plan: SHOP_PLAN }, 'config'))
  }

  it('is found correct', () => {
    expect(check(LIST)).toEqual([])
  })

  it.each<[string, JsonObject, string[]]>([
    ['an unknown setting', { ...LIST, color: 1 }, ['config.color unknown_field']],
    ['no target', { response: LIST.response ?? null }, ['config.resource required', 'config.method required']],
    ['syntax errors', { ...LIST, error: '{' }, ['config.error expression.syntax']],
    [
      'syntax errors in a field map',
      { ...LIST, response: { fields: { id: 'id', emails: [{ address: '(' }] } } },
      ['config.response.fields.emails[0].address expression.syntax'],
    ],
    ['a resource that the definition lacks', { ...LIST, resource: 'poeple' }, ['config.method method.unknown']],
    ['a method that the definition lacks', { ...LIST, method: 'lst' }, ['config.method method.unknown']],
    [
      'an allowed method that the definition lacks',
      { ...LIST, method: { expression: "'list'", allowed: ['list', 'users.list', 'users.drop'] } },
      ['config.method method.unknown'],
    ],
    ['no fields', { resource: 'people', method: 'list' }, ['config.response.fields required']],
    ['no id', { ...LIST, response: { fields: { name: 'x' } } }, ['config.response.fields.id required']],
    [
      'a field that the resource lacks',
      { ...LIST, response: { fields: { id: 'id', nmae: 'x', status_raw: 'y' } } },
      ['config.response.fields.nmae unknown_field'],
    ],
    [
      'enumerations that the resource lacks',
      { ...LIST, enums: { status: { map: { A: 'frozen' }, default: 'cold', write: { warm: 1 } }, state: { map: {} } } },
      [
        'config.enums.status.map.A enum',
        'config.enums.status.write.warm enum',
        'config.enums.status.default enum',
        'config.enums.state unknown_field',
      ],
    ],
    ['an unknown operator', { ...LIST, filters: { name: { ops: ['between'] } } }, ['config.filters.name.ops[0] enum']],
    [
      'filters, orders and references of unknown fields',
      {
        ...LIST,
        filters: { a: { ops: ['eq'] } },
        sort: { b: {} },
        expand: { c: { resource: 'users', method: 'get', ids: 'x', fields: {} } },
      },
      ['config.filters.a unknown_field', 'config.sort.b unknown_field', 'config.expand.c unknown_field'],
    ],
    [
      'steps that lack what they need',
      {
        ...LIST,
        before: [
          { name: 'a', type: 'request', resource: 'users', method: 'get' },
          { name: 'a', type: 'transform' },
        ],
      },
      ['config.before[1].expression required', 'config.before[1].name unique'],
    ],
    [
      'too many steps',
      {
        ...LIST,
        before: Array.from({ length: 6 }, (_, at) => ({ name: `s${at}`, type: 'transform', expression: '1' })),
      },
      ['config.before max'],
    ],
    ['too many characters', { ...LIST, error: `'${'x'.repeat(140_000)}'` }, ['config max']],
  ])('with %s is not', (_what, config, wanted) => {
    expect(check(config)).toEqual(wanted)
  })

  it('of a write needs no fields', () => {
    expect(check({ resource: 'people', method: 'create' }, 'create')).toEqual([])
  })

  it('may have fields of an environment beyond the schema', () => {
    const merged = mergeMappings([
      { layer: 'shipped', config: LIST },
      { layer: 'environment', config: { response: { fields: { tier: 'tier' } } } },
    ])
    const context = { resource: customers(), method: 'list', layers: merged.layers }
    expect(checkMapping(merged.config, context, 'config')).toEqual([])
  })

  it('that is wrong is not compiled', async () => {
    const merged = mergeMappings([{ layer: 'base', config: { method: 'list' } }])
    const failure = await catchFailure(async () => compileMapping(merged, customers(), 'list'))
    expect(failure).toMatchObject({ reason: 'DEFINITION_INVALID', violations: [{ field: 'config.resource' }] })
  })
})

describe('one layer of a mapping', () => {
  it.each<[string, JsonObject]>([
    ['a field alone', { response: { fields: { tier: 'tier' } } }],
    ['a removal at any depth', { enums: null, filters: { name: null }, response: { fields: { name: null } } }],
    ['one value of an enumeration', { enums: { status: { map: { B: 'open' } } } }],
    ['a parameter of a filter', { filters: { name: { to: 'q' } } }],
  ])('may be %s', (_what, config) => {
    expect(checkMappingLayer(config, 'config')).toEqual([])
  })

  it('has known settings and valid expressions', () => {
    expect(short(checkMappingLayer({ respones: {}, error: '(' }, 'config'))).toEqual([
      'config.error expression.syntax',
      'config.respones unknown_field',
    ])
  })
})
