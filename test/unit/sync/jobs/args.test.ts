import { describe, expect, it } from 'vitest'
import { type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { checkArgsSchema } from '../../../../src/sync/jobs/args.ts'
import { resolveArgs } from '../../../../src/sync/jobs/index.ts'

const schema: JsonObject = {
  type: 'object',
  properties: {
    since: { type: 'string', format: 'date', default: '2026-01-01' },
    limit: { type: 'integer', minimum: 1, maximum: 100, required: true },
    kinds: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
    filter: { type: 'object', properties: { open: { type: 'boolean', default: true } }, required: ['team'] },
    any: {},
  },
  additionalProperties: false,
}

const noCheck = async () => undefined

async function violationsOf(args: JsonObject, rules = schema): Promise<string[][]> {
  const failure = await resolveArgs(noCheck, { argsSchema: rules, argsValidation: '' }, args).catch((error) => error)
  expect(failure.reason).toBe('ARGS_INVALID')
  return failure.violations.map(({ field, rule }: { field: string; rule: string }) => [field, rule])
}

describe('arguments', () => {
  it('get the defaults of the schema, nested ones too, and keep what is given', async () => {
    const args = await resolveArgs(
      noCheck,
      { argsSchema: schema, argsValidation: '' },
      { limit: 5, filter: { team: 't' }, any: [null] },
    )
    expect(args).toEqual({ limit: 5, filter: { team: 't', open: true }, since: '2026-01-01', any: [null] })
  })

  it('get the defaults in every item of a list', async () => {
    const items = { type: 'object', properties: { open: { type: 'boolean', default: true } } }
    const argsSchema = { type: 'object', properties: { filters: { type: 'array', items } } }
    const given = { filters: [{ team: 'a' }, { open: false }, {}] }
    expect(await resolveArgs(noCheck, { argsSchema, argsValidation: '' }, given)).toEqual({
      filters: [{ team: 'a', open: true }, { open: false }, { open: true }],
    })
  })

  it('are free when there is no schema', async () => {
    const given = { anything: [1, { goes: true }] }
    expect(await resolveArgs(noCheck, { argsSchema: {}, argsValidation: '' }, given)).toEqual(given)
  })

  it.each([
    ['integer', '12345678901234567890', true],
    ['integer', '1.0', true],
    ['integer', '1E2', true],
    ['integer', '1.10', false],
    ['number', '0.1000000000000000055511151231257827', true],
    ['number', '1e400', true],
    ['string', '1.0', false],
    ['object', '1.0', false],
  ])('of type %s: %s is one: %s', async (type, text, isOne) => {
    const argsSchema = { type: 'object', properties: { n: { type } } }
    const given = { n: parseJson(text) }
    if (isOne) expect(await resolveArgs(noCheck, { argsSchema, argsValidation: '' }, given)).toEqual(given)
    else expect(await violationsOf(given, argsSchema)).toEqual([['args.n', 'args.type']])
  })

  it.each([
    ['[12345678901234567890]', '12345678901234567891', false],
    ['[12345678901234567890]', '12345678901234567890', true],
    ['[1]', '1.0', true],
    ['[1.10]', '1.1', true],
    ['[100]', '1e2', true],
  ])('of the list %s: %s is on it: %s', async (allowed, text, isOn) => {
    const argsSchema = { type: 'object', properties: { n: { enum: parseJson(allowed) } } }
    const given = { n: parseJson(text) }
    if (isOn) expect(await resolveArgs(noCheck, { argsSchema, argsValidation: '' }, given)).toEqual(given)
    else expect(await violationsOf(given, argsSchema)).toEqual([['args.n', 'args.enum']])
  })

  it('are held to bounds as numbers, however they are spelt', async () => {
    expect(await violationsOf({ limit: parseJson('1e3'), filter: { team: 't' } })).toEqual([
      ['args.limit', 'args.maximum'],
    ])
  })

  it.each<{ args: JsonObject; findings: string[][] }>([
    { args: {}, findings: [['args.limit', 'args.required']] },
    { args: { limit: 1.5 }, findings: [['args.limit', 'args.type']] },
    { args: { limit: 0 }, findings: [['args.limit', 'args.minimum']] },
    { args: { limit: 101 }, findings: [['args.limit', 'args.maximum']] },
    {
      args: { limit: 1, kinds: ['a', 'c', 1] },
      findings: [
        ['args.kinds[1]', 'args.enum'],
        ['args.kinds[2]', 'args.type'],
      ],
    },
    { args: { limit: 1, kinds: 'a' }, findings: [['args.kinds', 'args.type']] },
    { args: { limit: 1, filter: {} }, findings: [['args.filter.team', 'args.required']] },
    { args: { limit: 1, other: 1 }, findings: [['args.other', 'args.unknown']] },
    {
      args: { limit: null, since: 7 },
      findings: [
        ['args.since', 'args.type'],
        ['args.limit', 'args.type'],
      ],
    },
  ])('$args are refused', async ({ args, findings }) => {
    expect((await violationsOf(args)).sort()).toEqual(findings.sort())
  })

  it('pass the check of the job after the schema, which sees them with defaults', async () => {
    const seen: JsonObject[] = []
    const objecting = async (_: string, input: JsonObject) => {
      seen.push(input)
      return { message: 'too early' }
    }
    const rules = { argsSchema: schema, argsValidation: '$x' }
    await expect(resolveArgs(objecting, rules, { limit: 1 })).rejects.toMatchObject({
      reason: 'ARGS_INVALID',
      publicMessage: 'the job rejects the arguments: too early',
    })
    expect(seen).toEqual([{ args: { limit: 1, since: '2026-01-01' } }])
    expect(await resolveArgs(async () => null, rules, { limit: 1 })).toMatchObject({ limit: 1 })
  })
})

describe('a schema', () => {
  it('of supported keywords passes', () => {
    expect(checkArgsSchema(schema)).toEqual([])
    expect(checkArgsSchema({})).toEqual([])
  })

  it.each<{ name: string; rules: JsonObject; fields: string[] }>([
    { name: 'unknown keywords', rules: { oneOf: [], allOf: [] }, fields: ['args_schema.oneOf', 'args_schema.allOf'] },
    {
      name: 'an unknown type',
      rules: { properties: { a: { type: 'date' } } },
      fields: ['args_schema.properties.a.type'],
    },
    {
      name: 'a rule that would not be held, deep down',
      rules: { properties: { b: { items: { pattern: 'x' } } } },
      fields: ['args_schema.properties.b.items.pattern'],
    },
    { name: 'a property that is no schema', rules: { properties: { c: 5 } }, fields: ['args_schema.properties.c'] },
    {
      name: 'mistyped keywords',
      rules: { enum: 'a', required: [1] },
      fields: ['args_schema.enum', 'args_schema.required'],
    },
    {
      name: 'a default that it refuses itself',
      rules: { properties: { d: { type: 'integer', default: 'x' } } },
      fields: ['args_schema.properties.d.default'],
    },
  ])('is refused with $name', ({ rules, fields }) => {
    expect(checkArgsSchema(rules).map(({ field }) => field)).toEqual(fields)
  })
})
