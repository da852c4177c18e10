import {
  decimalForm,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
  propertiesOf,
  typesOf,
} from '../../foundation/json/index.ts'

/** Keywords of alternatives; a portable schema has none of them. */
const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf'] as const
const SCALARS: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean'])
/** Formats that Gemini takes, by type; it refuses the whole request for another one. */
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ['date-time'],
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
}
const VALUES_SHOWN_MAX = 20

/**
 * One level of a schema in the subset of JSON Schema that all model providers take for arguments, of which the narrowest is the OpenAPI
 * 3.0 subset of Gemini's function declarations: exactly one `type`, `nullable` instead of the type `null`, enumerations of texts
 * alone, lists with `items`, no alternatives, no `const`. What cannot be said so is said in the description, and third parties
 * check it.
 *
 * Of several types the one that takes the others' values: a text of scalars, which `readArguments` makes of numbers too; else the
 * first. Of several objects one with the members of all.
 *
 * @param schema whose inner schemas are portable
 */
export function portableSchema(schema: JsonObject): JsonObject {
  const merged = ALTERNATIVES.reduce(withoutAlternatives, schema)
  const { const: only, enum: values, format, type: _, nullable, items, ...others } = merged
  const listed = only === undefined ? values : [only]
  const choices = Array.isArray(listed) ? listed.filter((value) => value !== null) : []
  const type = typeOfSchema(merged, choices)
  const { properties: _properties, required: _required, additionalProperties: _additional, ...scalar } = others
  const rest = type === 'object' ? others : scalar
  const isNullable = nullable === true || typesOf(merged).includes('null') || choices.length < lengthOf(listed)
  const texts = choices.filter((value): value is string => typeof value === 'string' && value !== '')
  const isEnumeration = type === 'string' && texts.length > 0 && texts.length === choices.length
  const hints = [
    choices.length > 0 && !isEnumeration ? `One of ${choices.slice(0, VALUES_SHOWN_MAX).map(textOf).join(', ')}.` : '',
    typeof format === 'string' && !takesFormat(type, format) ? `Format: ${format}.` : '',
  ]
  const description = [rest.description, ...hints].filter((part) => typeof part === 'string' && part !== '').join(' ')
  return {
    type,
    ...(isNullable ? { nullable: true } : {}),
    ...rest,
    ...(description === '' ? {} : { description }),
    ...(isEnumeration ? { enum: [...new Set(texts)] } : {}),
    ...(typeof format === 'string' && takesFormat(type, format) ? { format } : {}),
    ...(type === 'array' ? { items: isJsonObject(items) ? items : { type: 'string' } } : {}),
  }
}

function takesFormat(type: string, format: string): boolean {
  return FORMATS[type]?.includes(format) === true
}

function lengthOf(values: Json | undefined): number {
  return Array.isArray(values) ? values.length : 0
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value || 'an empty text' : JSON.stringify(value)
}

/** The type that a schema names or implies; a text when it says nothing. */
function typeOfSchema(schema: JsonObject, choices: readonly Json[]): string {
  const named = typesOf(schema).filter((type) => type !== 'null')
  if (named.length > 0) return oneOfTypes(named)
  if (choices.length > 0) return oneOfTypes(choices.map(typeOfValue))
  if (schema.properties !== undefined || isJsonObject(schema.additionalProperties)) return 'object'
  if (schema.items !== undefined) return 'array'
  return schema.minimum !== undefined || schema.maximum !== undefined ? 'number' : 'string'
}

function oneOfTypes(types: readonly string[]): string {
  const [first = 'string', ...others] = new Set(types)
  if (others.length === 0) return first
  const all = [first, ...others]
  if (!all.every((type) => SCALARS.has(type))) return first
  return all.every((type) => type === 'integer' || type === 'number') ? 'number' : 'string'
}

function typeOfValue(value: Json): string {
  if (Array.isArray(value)) return 'array'
  if (isJsonNumber(value)) return decimalForm(value).exponent >= 0 ? 'integer' : 'number'
  return isJsonObject(value) ? 'object' : typeof value
}

/** The schema with its alternatives merged into it; what it says itself counts more. */
function withoutAlternatives(schema: JsonObject, keyword: (typeof ALTERNATIVES)[number]): JsonObject {
  const { [keyword]: listed, ...own } = schema
  if (!Array.isArray(listed)) return own
  const all = listed.filter(isJsonObject)
  const given = all.filter((each) => each.type !== 'null')
  const nullable = given.length < all.length || given.some((each) => each.nullable === true)
  const merged = keyword === 'allOf' ? given.reduce<JsonObject>(both, {}) : eitherOf(given)
  return { ...both(merged, own), ...(nullable && keyword !== 'allOf' ? { nullable } : {}) }
}

/** One schema for the values of several. */
function eitherOf(given: readonly JsonObject[]): JsonObject {
  const [first = {}, ...others] = given
  if (others.length === 0) return first
  const type = oneOfTypes(given.flatMap(typesOf))
  const alike = given.filter((each) => each.type === type)
  if (type === 'object') {
    const { required: _, ...merged } = alike.reduce<JsonObject>(both, {})
    const [needed = [], ...rest] = alike.map(({ required }) => (Array.isArray(required) ? required : []))
    const required = needed.filter((name) => rest.every((each) => each.includes(name)))
    return { ...merged, ...(required.length === 0 ? {} : { required }) }
  }
  const isEnumeration = given.every((each) => Array.isArray(each.enum))
  if (isEnumeration) return { type, enum: given.flatMap((each) => (Array.isArray(each.enum) ? each.enum : [])) }
  // Bounds of one of several alternatives are none of all.
  if (SCALARS.has(type)) return { type }
  return alike[0] ?? { type }
}

/** What both schemas say; where they differ, what the second one says. */
function both(one: JsonObject, other: JsonObject): JsonObject {
  const properties = { ...propertiesOf(one), ...propertiesOf(other) }
  const required = [one.required, other.required].flatMap((names) => (Array.isArray(names) ? names : []))
  return {
    ...one,
    ...other,
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
  }
}
