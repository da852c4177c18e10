import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { plainDescription, simplifySchema } from '../../../../src/tools/servers/index.ts'
import { buildToolInput, type ToolInputSource } from '../../../../src/tools/servers/tool-input.ts'
import { geminiProblems } from './gemini-problems.ts'

const NOTHING: ToolInputSource = {
  required: [],
  querySchema: {},
  bodySchema: {},
  hidden: new Set(),
  noun: 'contact',
  hasBody: false,
  controls: [],
}

const text = { type: 'string' }

function input(source: Partial<ToolInputSource>) {
  const { schema, parameters, controls } = buildToolInput({ ...NOTHING, ...source })
  return {
    properties: Object.keys(schema.properties as JsonObject),
    required: schema.required ?? [],
    parameters,
    controls,
  }
}

const object = (properties: JsonObject, more: JsonObject = {}) => ({ type: 'object', properties, ...more })

describe('the arguments of a tool', () => {
  it('are parameters of the address, the query and the body in one flat object', () => {
    const found = input({
      required: ['id', 'query.owner'],
      querySchema: object({ expand: text }),
      bodySchema: object({ name: text, note: text }, { required: ['name'] }),
    })
    expect(found).toEqual({
      properties: ['id', 'owner', 'expand', 'name', 'note'],
      required: ['id', 'owner', 'name'],
      parameters: {
        id: { part: 'id' },
        owner: { part: 'query', name: 'owner' },
        expand: { part: 'query', name: 'expand' },
        name: { part: 'body', name: 'name' },
        note: { part: 'body', name: 'note' },
      },
      controls: {},
    })
  })

  it.each<[string, Partial<ToolInputSource>, readonly string[]]>([
    [
      'shares a name with the query',
      { querySchema: object({ name: text }), bodySchema: object({ name: text }) },
      ['name', 'body'],
    ],
    ['has an id beside that of the address', { required: ['id'], bodySchema: object({ id: text }) }, ['id', 'body']],
    ['may have further fields', { bodySchema: object({ name: text }, { additionalProperties: true }) }, ['body']],
    ['is a list', { bodySchema: { type: 'array', items: text } }, ['body']],
    ['is not described', { hasBody: true }, ['body']],
  ])('hold the body as one when it %s', (_, source, properties) => {
    expect(input(source).properties).toEqual(properties)
  })

  it('leave out what paging sets and the account fills', () => {
    const querySchema = object({ after: text, workspace: text, q: text })
    const hidden = new Set(['query.after', 'query.workspace'])
    expect(input({ querySchema, hidden }).properties).toEqual(['q'])
  })

  it('have names that model providers take, and lead to the names of the third party', () => {
    const querySchema = object({ 'filter[email]': text, $top: text, 'a b': text, '[]': text, filter_email: text })
    const { parameters } = input({ querySchema })
    expect(parameters).toEqual({
      filter_email: { part: 'query', name: 'filter[email]' },
      top: { part: 'query', name: '$top' },
      a_b: { part: 'query', name: 'a b' },
      value: { part: 'query', name: '[]' },
      query_filter_email: { part: 'query', name: 'filter_email' },
    })
  })

  it('are numbered where many would have the same name', () => {
    const names = Array.from({ length: 2_000 }, (_, at) => `a${'['.repeat(at + 1)}b`)
    const { properties } = input({ querySchema: object(Object.fromEntries(names.map((name) => [name, {}]))) })
    expect(properties.slice(0, 3)).toEqual(['a_b', 'query_a_b', 'query_a_b_2'])
    expect(new Set(properties).size).toBe(properties.length)
    expect(properties.at(-1)).toBe(`query_a_b_${properties.length - 1}`)
  })

  it('give way to arguments of the third party with the name of ours', () => {
    const controls = [{ control: 'limit', schema: {} } as const, { control: 'fields', schema: {} } as const]
    expect(input({ querySchema: object({ fields: text }), controls })).toMatchObject({
      properties: ['fields', 'limit', 'tool_fields'],
      controls: { limit: 'limit', fields: 'tool_fields' },
    })
  })
})

describe('a schema for models', () => {
  it.each<[string, JsonObject, JsonObject]>([
    [
      'inlines references within the document',
      { $defs: { a: { type: 'integer' } }, properties: { x: { $ref: '#/$defs/a', description: 'X' } } },
      { type: 'object', properties: { x: { type: 'integer', description: 'X' } } },
    ],
    [
      'drops references to elsewhere',
      { properties: { x: { $ref: 'https://x.example/y' } } },
      { type: 'object', properties: { x: { type: 'string' } } },
    ],
    [
      'ends a definition that names itself',
      { $defs: { a: { $ref: '#/$defs/a' } }, properties: { x: { $ref: '#/$defs/a' } } },
      { type: 'object', properties: { x: { type: 'object' } } },
    ],
    [
      'reads `required: true` of a property',
      { properties: { x: { type: 'string', required: true } } },
      { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] },
    ],
    [
      'leaves out what cannot be written',
      { properties: { x: { type: 'string', readOnly: true } }, required: ['x'] },
      { type: 'object', properties: {} },
    ],
    ['keeps a short enumeration', { enum: ['a', 'b'] }, { type: 'string', enum: ['a', 'b'] }],
    ['drops keywords that clients do not know', { type: 'string', 'x-vendor': 1, examples: ['a'] }, { type: 'string' }],
  ])('%s', (_, schema, simple) => {
    expect(simplifySchema(schema)).toEqual(simple)
  })

  it.each<[JsonObject, JsonObject]>([
    [{ type: ['string', 'integer'] }, { type: 'string' }],
    [{ type: ['integer', 'number'] }, { type: 'number' }],
    [{ type: ['string', 'null'] }, { type: 'string', nullable: true }],
    [
      { type: ['array', 'string'], items: { type: ['null', 'integer'] } },
      { type: 'array', items: { type: 'integer', nullable: true } },
    ],
    [{ type: 'array' }, { type: 'array', items: { type: 'string' } }],
    [
      { anyOf: [{ type: 'string' }, { type: 'null' }], default: 'a' },
      { type: 'string', nullable: true, default: 'a' },
    ],
    [{ anyOf: [{ type: 'string', maxLength: 3 }, { type: 'integer' }] }, { type: 'string' }],
    [
      {
        oneOf: [
          { const: 'a', title: 'A' },
          { const: 'b', title: 'B' },
        ],
      },
      { type: 'string', enum: ['a', 'b'] },
    ],
    [
      {
        oneOf: [
          { type: 'object', properties: { x: { type: 'string' }, y: { const: 1 } }, required: ['x', 'y'] },
          { type: 'object', properties: { x: { type: 'string' }, z: {} }, required: ['x'] },
        ],
      },
      {
        type: 'object',
        properties: { x: { type: 'string' }, y: { type: 'integer', description: 'One of 1.' }, z: { type: 'string' } },
        required: ['x'],
      },
    ],
    [
      { allOf: [{ properties: { a: {} }, required: ['a'] }, { properties: { b: { type: 'integer' } } }] },
      { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer' } }, required: ['a'] },
    ],
    [{ const: 'a' }, { type: 'string', enum: ['a'] }],
    [{ enum: [1, 2, null] }, { type: 'integer', nullable: true, description: 'One of 1, 2.' }],
    [{ enum: ['', 'a'] }, { type: 'string', description: 'One of an empty text, a.' }],
    [
      { type: 'boolean', enum: [true] },
      { type: 'boolean', description: 'One of true.' },
    ],
    [
      { type: 'string', format: 'email', description: 'Of work.' },
      { type: 'string', description: 'Of work. Format: email.' },
    ],
    [
      { type: 'string', format: 'date-time' },
      { type: 'string', format: 'date-time' },
    ],
    [{ type: 'integer', exclusiveMinimum: 0, multipleOf: 5 }, { type: 'integer' }],
    [
      { type: 'array', prefixItems: [{ type: 'string' }], uniqueItems: true },
      { type: 'array', items: { type: 'string' } },
    ],
    [
      { additionalProperties: { type: ['string', 'number'] } },
      { type: 'object', additionalProperties: { type: 'string' } },
    ],
    [{ type: 'string', properties: { a: {} }, required: ['a'], items: {} }, { type: 'string' }],
    [{ type: 'string', not: { const: 'a' } }, { type: 'string' }],
  ])('says %j so that every provider takes it', (schema, simple) => {
    expect(simplifySchema(schema)).toEqual(simple)
    expect(geminiProblems(simplifySchema(schema))).toEqual([])
  })

  it('replaces an enumeration of more than 50 values by a hint', () => {
    const values = Array.from({ length: 51 }, (_, at) => `v${at}`)
    expect(simplifySchema({ enum: values, description: 'Zone.' })).toEqual({
      type: 'string',
      description: 'Zone. One of 51 values such as v0, v1, v2, v3, v4.',
    })
  })

  it('shows an enumeration of long values as a hint', () => {
    expect(simplifySchema({ enum: ['a', 'b'.repeat(101)] })).toEqual({
      type: 'string',
      description: `One of 2 values such as a, ${'b'.repeat(100)}.`,
    })
  })

  it('leaves out values of other keywords that are longer than 1000 characters', () => {
    expect(simplifySchema({ type: 'string', default: 'x'.repeat(1_001) })).toEqual({ type: 'string' })
  })

  it('has no more than 32 Ki characters, however often a definition is inlined, and keeps its own properties', () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `p${at}`)
    const each = (count: number, $ref: string) => Object.fromEntries(names(count).map((name) => [name, { $ref }]))
    const values = Array.from({ length: 50 }, (_, at) => `${at}${'z'.repeat(90)}`)
    const simple = simplifySchema({
      $defs: { e: { enum: values, description: 'd'.repeat(290) }, o: { properties: each(45, '#/$defs/e') } },
      properties: each(42, '#/$defs/o'),
    })
    expect(JSON.stringify(simple).length).toBeLessThan(33 * 1_024)
    expect(Object.keys(simple.properties as JsonObject)).toEqual(names(42))
  })

  it('leaves out names of inner properties beyond its characters', () => {
    const inner = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}${'n'.repeat(100)}`, {}]))
    const outer = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`p${at}`, { $ref: '#/$defs/o' }]))
    const simple = simplifySchema({ $defs: { o: { properties: inner } }, properties: outer })
    expect(JSON.stringify(simple).length).toBeLessThan(1_000)
  })

  it('cuts descriptions at 300 characters and shows nothing hidden', () => {
    expect(plainDescription('x'.repeat(400))).toHaveLength(300)
    // A right-to-left override, a NUL, a zero-width space and tag characters, which models read and people do not see.
    expect(plainDescription('a\u202eb\u0000c\u200bd\u{e0041}e\n\n f')).toBe('abcde f')
  })
})
