import { describe, expect, it } from 'vitest'
import { type Json, type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { checkArguments, readArguments } from '../../../../src/tools/servers/index.ts'

const of = (property: JsonObject): JsonObject => ({
  type: 'object',
  properties: { x: property },
  additionalProperties: false,
})

describe('reading arguments', () => {
  it.each<[JsonObject, Json, Json]>([
    [{ type: 'integer' }, '5812', 5812],
    [{ type: 'integer' }, '-3', -3],
    [{ type: 'integer' }, '12345678901234567890', parseJson('12345678901234567890')],
    [{ type: 'number' }, '1.5', 1.5],
    [{ type: 'number' }, '0', 0],
    [{ type: 'boolean' }, 'true', true],
    [{ type: 'boolean' }, 'false', false],
    [{ type: 'string' }, 5812, '5812'],
    [{ type: 'string' }, parseJson('12345678901234567890'), '12345678901234567890'],
    [{ type: 'array', items: { type: 'integer' } }, ['1', 2], [1, 2]],
    [{ type: 'object', properties: { y: { type: 'boolean' } } }, { y: 'true' }, { y: true }],
    [{ type: 'object', additionalProperties: { type: 'string' } }, { y: 1 }, { y: '1' }],
    [{ type: 'array', items: { type: 'integer' } }, '["1",2]', [1, 2]],
    [{ type: 'object', properties: { y: { type: 'boolean' } } }, '{"y":"true"}', { y: true }],
  ])('takes as %j: %j', (schema, value, read) => {
    expect(readArguments(of(schema), { x: value })).toEqual({ x: read })
    expect(checkArguments(of(schema), { x: read })).toEqual([])
  })

  it.each<[JsonObject, Json]>([
    [{ type: 'integer' }, '05'],
    [{ type: 'integer' }, ' 5'],
    [{ type: 'integer' }, '+5'],
    [{ type: 'integer' }, '5.0'],
    [{ type: 'integer' }, '1e3'],
    [{ type: 'integer' }, '-0'],
    [{ type: 'integer' }, ''],
    [{ type: 'number' }, '1.50'],
    [{ type: 'number' }, 'NaN'],
    [{ type: 'number' }, 'Infinity'],
    [{ type: 'boolean' }, 'True'],
    [{ type: 'boolean' }, 'yes'],
    [{ type: 'boolean' }, 1],
    [{ type: 'string' }, true],
    [{ type: 'array', items: { type: 'integer' } }, '5'],
    [{ type: 'array' }, '{}'],
    [{ type: 'object' }, '{'],
    [{ type: 'object' }, ''],
  ])('leaves what could be meant otherwise to the check, %j: %j', (schema, value) => {
    expect(readArguments(of(schema), { x: value })).toEqual({ x: value })
    expect(checkArguments(of(schema), { x: value })).toMatchObject([{ rule: 'type' }])
  })

  it('keeps what no schema names, and a text that looks like a number where texts are', () => {
    const given = { x: '5', y: '6', z: ['7'] }
    expect(readArguments(of({ type: 'string' }), given)).toEqual(given)
  })
})

describe('a check of arguments', () => {
  it.each<[JsonObject, Json]>([
    [{ type: 'integer' }, 3],
    [{ type: 'number' }, 3],
    [{ type: ['string', 'null'] }, null],
    [{ type: 'string', nullable: true }, null],
    [{ enum: [1, 'a'] }, 'a'],
    [{ type: 'object' }, { anything: 1 }],
    [{ type: 'array', items: { type: 'string' } }, ['a']],
    [{}, { a: [1] }],
    [{ type: 'integer' }, parseJson('12345678901234567890')],
  ])('accepts %j: %j', (schema, value) => {
    expect(checkArguments(of(schema), { x: value })).toEqual([])
  })

  it.each<[JsonObject, Json, string, string]>([
    [{ type: 'integer' }, 3.5, 'x', 'type'],
    [{ type: 'integer' }, '3', 'x', 'type'],
    [{ type: 'string' }, null, 'x', 'type'],
    [{ enum: ['a'] }, 'b', 'x', 'enum'],
    [{ const: 'a' }, 'b', 'x', 'const'],
    [{ type: 'integer', minimum: 1 }, 0, 'x', 'minimum'],
    [{ type: 'integer', maximum: 1 }, 2, 'x', 'maximum'],
    [{ type: 'number', exclusiveMinimum: 0 }, 0, 'x', 'exclusiveMinimum'],
    [{ type: 'string', maxLength: 1 }, 'ab', 'x', 'maxLength'],
    [{ type: 'array', minItems: 1 }, [], 'x', 'minItems'],
    [{ type: 'array', items: { type: 'string' } }, ['a', 1], 'x[1]', 'type'],
    [{ type: 'object', required: ['y'] }, {}, 'x.y', 'required'],
    [{ type: 'object', properties: { y: { type: 'string' } } }, { y: 1 }, 'x.y', 'type'],
    [{ type: 'object', properties: {}, additionalProperties: false }, { y: 1 }, 'x.y', 'unknown_field'],
    [{ type: 'object', additionalProperties: { type: 'string' } }, { y: 1 }, 'x.y', 'type'],
  ])('finds %j violated by %j', (schema, value, field, rule) => {
    expect(checkArguments(of(schema), { x: value })).toMatchObject([{ field, rule }])
  })

  it('suggests the name of an argument that was mistyped', () => {
    const [found] = checkArguments({ ...of({}), properties: { status: {} } }, { statsu: 'open' })
    expect(found?.description).toBe('is not an argument, did you mean status?')
  })

  it('reports no more than 20 violations, and ends at any depth', () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`n${at}`, 1]))
    expect(checkArguments(of({}), many)).toHaveLength(20)
    let deep: Json = 1
    for (let at = 0; at < 5_000; at++) deep = [deep]
    const schema: { items?: unknown } = {}
    schema.items = schema
    expect(checkArguments(of(schema as JsonObject), { x: deep })).toEqual([])
  })
})
