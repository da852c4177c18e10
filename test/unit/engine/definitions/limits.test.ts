import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CONFIG_LENGTH_MAX } from '../../../../src/engine/definitions/check.ts'
import { resolvedSchema } from '../../../../src/engine/definitions/config-schema.ts'
import { checkConfig, checkOverride, integrationConfigSchema } from '../../../../src/engine/definitions/index.ts'
import { deepPartial } from '../../../../src/engine/definitions/override-schema.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'

function toSchema(schema: z.ZodType): JsonObject {
  const json = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // JSON Schema has no word for a key that must be absent.
      if (zodSchema._zod.def.type === 'undefined') jsonSchema.not = {}
    },
  })
  return JSON.parse(JSON.stringify(json)) as JsonObject
}

/** Places of a JSON Schema that take a text, list or map of any size. */
function findUnbounded(schema: Json | undefined, at: string): string[] {
  if (!isJsonObject(schema)) return []
  const { type } = schema
  const isFree =
    (type === 'string' && schema.maxLength === undefined && schema.enum === undefined && schema.const === undefined) ||
    (type === 'array' && schema.maxItems === undefined) ||
    (type === 'object' && schema.additionalProperties !== false && schema.maxProperties === undefined) ||
    Object.keys(schema).every((key) => key === 'description')
  const children: [string, Json | undefined][] = [
    ...Object.entries({ ...asObject(schema.properties), ...asObject(schema.$defs) }),
    ['*', schema.additionalProperties],
    ['<key>', schema.propertyNames],
    ['[]', schema.items],
    ...['anyOf', 'oneOf', 'allOf'].flatMap((key) =>
      Array.isArray(schema[key]) ? schema[key].map((option: Json, index): [string, Json] => [`|${index}`, option]) : [],
    ),
  ]
  return [...(isFree ? [at] : []), ...children.flatMap(([key, child]) => findUnbounded(child, `${at}.${key}`))]
}

function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

describe('every text, list and map has a limit', () => {
  it.each([
    ['a definition', integrationConfigSchema()],
    ['a merged definition', toSchema(resolvedSchema)],
    ['an override', toSchema(deepPartial(resolvedSchema))],
  ])('of %s', (_what, schema) => {
    expect(findUnbounded(schema, '')).toEqual([])
  })
})

const check = (config: JsonObject) =>
  checkConfig(config, 'integration', 'config').map(({ field, rule }) => [field, rule])
const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, '1']))

describe('what is beyond a limit is a finding', () => {
  it.each<[string, JsonObject, string]>([
    ['a base address', { base_url: `https://a.example/${'a'.repeat(4_096)}` }, 'config.base_url max'],
    ['an expression', { error_expression: `1${' '.repeat(65_536)}` }, 'config.error_expression max'],
    ['the entries of a map', { headers: named(1_001) }, 'config.headers max'],
    ['a JSON value', { query: { a: 'x'.repeat(131_072) } }, 'config.query.a max'],
    ['a definition', { label: 'x'.repeat(CONFIG_LENGTH_MAX) }, 'config config.max'],
  ])('%s', (_what, config, finding) => {
    expect(check(config).map((parts) => parts.join(' '))).toEqual([finding])
  })

  it('in an override too', () => {
    const findings = checkOverride({ base_url: 'https://a.example' }, { headers: named(1_001) }, 'override')
    expect(findings.map(({ field }) => field)).toEqual(['override.headers'])
    expect(checkOverride({}, { label: 'x'.repeat(CONFIG_LENGTH_MAX) }, 'override')).toHaveLength(1)
  })
})
