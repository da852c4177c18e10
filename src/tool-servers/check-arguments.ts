import {
  formatQuantity,
  isJsonNumber,
  isJsonObject,
  isSameScalar,
  type Json,
  type JsonObject,
  mustBeOneOf,
  suggest,
  textOfChoice,
  toDouble,
  type Violation,
} from '../base/index.ts'

/** A model repairs a few arguments at a time. */
const VIOLATIONS_MAX = 20
const DEPTH_MAX = 32

/**
 * Checks the arguments of a tool against its input schema; the keywords that `simplifySchema` keeps, without `format`, `not`
 * and the alternatives, which third parties check themselves.
 *
 * @returns what is wrong, at most 20 violations; empty: nothing
 */
export function checkArguments(schema: JsonObject, given: JsonObject): readonly Violation[] {
  const found: Violation[] = []
  check(schema, given, '', found, 0)
  return found
}

function check(schema: JsonObject, value: Json, path: string, found: Violation[], depth: number): void {
  if (found.length >= VIOLATIONS_MAX || depth > DEPTH_MAX) return
  const problem = problemOf(schema, value)
  if (problem !== undefined) {
    found.push({ field: path, ...problem })
    return
  }
  if (Array.isArray(value) && isJsonObject(schema.items)) {
    for (const [at, item] of value.entries()) {
      if (found.length >= VIOLATIONS_MAX) return
      check(schema.items, item, `${path}[${at}]`, found, depth + 1)
    }
  } else if (isJsonObject(value)) checkProperties(schema, value, path, found, depth)
}

function checkProperties(schema: JsonObject, value: JsonObject, path: string, found: Violation[], depth: number): void {
  const { additionalProperties } = schema
  const properties = isJsonObject(schema.properties) ? schema.properties : {}
  for (const name of Array.isArray(schema.required) ? schema.required : [])
    if (typeof name === 'string' && !Object.hasOwn(value, name))
      found.push({ field: join(path, name), description: 'is required', rule: 'required' })
  for (const [name, item] of Object.entries(value)) {
    // A client may send a million names, and a suggestion for each costs a comparison with all arguments.
    if (found.length >= VIOLATIONS_MAX) return
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (isJsonObject(known)) check(known, item, join(path, name), found, depth + 1)
    else if (additionalProperties === false) {
      const description = `is not an argument${suggest(name, Object.keys(properties))}`
      found.push({ field: join(path, name), description, rule: 'unknown_field' })
    } else if (isJsonObject(additionalProperties)) check(additionalProperties, item, join(path, name), found, depth + 1)
  }
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

type ArgumentProblem = Pick<Violation, 'description' | 'rule'>

function problemOf(schema: JsonObject, value: Json): ArgumentProblem | undefined {
  const types = typesOf(schema.type)
  if (types.length > 0 && !types.some((type) => isOfType(type, value)))
    return { description: `must be ${types.join(' or ')}, not ${typeOf(value)}`, rule: 'type' }
  const { enum: values, const: only } = schema
  if (Array.isArray(values) && !values.some((each) => isSameScalar(each, value)))
    return { description: mustBeOneOf(value, values.map(textOfChoice)), rule: 'enum' }
  if (only !== undefined && !isSameScalar(only, value))
    return { description: `must be ${JSON.stringify(only)}`, rule: 'const' }
  if (isJsonNumber(value)) return numberProblem(schema, toDouble(value))
  if (typeof value === 'string') return countProblem(schema, ['minLength', 'maxLength'], value.length, 'character')
  if (Array.isArray(value)) return countProblem(schema, ['minItems', 'maxItems'], value.length, 'item')
  return undefined
}

function typesOf(type: Json | undefined): readonly string[] {
  return (Array.isArray(type) ? type : [type]).filter((each): each is string => typeof each === 'string')
}

function typeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isJsonNumber(value)) return Number.isInteger(toDouble(value)) ? 'integer' : 'number'
  return typeof value
}

function isOfType(type: string, value: Json): boolean {
  return type === typeOf(value) || (type === 'number' && isJsonNumber(value))
}

function numberProblem(schema: JsonObject, value: number): ArgumentProblem | undefined {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  if (isJsonNumber(minimum) && value < toDouble(minimum)) return bound(`at least ${minimum}`, 'minimum')
  if (isJsonNumber(maximum) && value > toDouble(maximum)) return bound(`at most ${maximum}`, 'maximum')
  if (isJsonNumber(exclusiveMinimum) && value <= toDouble(exclusiveMinimum))
    return bound(`more than ${exclusiveMinimum}`, 'exclusiveMinimum')
  if (isJsonNumber(exclusiveMaximum) && value >= toDouble(exclusiveMaximum))
    return bound(`less than ${exclusiveMaximum}`, 'exclusiveMaximum')
  return undefined
}

function countProblem(
  schema: JsonObject,
  [least, most]: readonly [string, string],
  count: number,
  noun: string,
): ArgumentProblem | undefined {
  const [min, max] = [schema[least], schema[most]]
  if (isJsonNumber(min) && count < toDouble(min))
    return { description: `must have at least ${formatQuantity(toDouble(min), noun)}`, rule: least }
  if (isJsonNumber(max) && count > toDouble(max))
    return { description: `must have at most ${formatQuantity(toDouble(max), noun)}`, rule: most }
  return undefined
}

function bound(limit: string, rule: string): ArgumentProblem {
  return { description: `must be ${limit}`, rule }
}
