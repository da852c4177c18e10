import type { Violation } from '../base/errors.ts'
import { createSuggester, formatQuantity, mustBeOneOf, textOfChoice } from '../base/text.ts'
import { formatDotPath } from './dot-path.ts'
import { isJsonObject, JSON_DEPTH_MAX, type Json, type JsonObject } from './json.ts'
import { decimalForm, isJsonNumber, toDouble } from './json-number.ts'

/** What is wrong with a value. */
export type SchemaProblem = Pick<Violation, 'description' | 'rule'>

/** How values are checked, and what is reported. */
export interface JsonSchemaCheck {
  /** Path of the value in the findings; default: none, the names of its members alone. */
  readonly path?: string
  readonly findingsMax: number
  /** Whether a member that is `null` counts as absent: of any type, unless it is required. */
  readonly isNullAbsent?: boolean
  /** Whether the outermost object is a change: required members may be left out of it, though not be `null`. */
  readonly isPartial?: boolean
  /** What is said of a member that a schema does not allow. @param near the name that was probably meant, as `suggest` says it */
  readonly describeUnknown?: (suggestion: string) => string
  /** What keywords beyond the subset find; asked first. */
  readonly findFurther?: (schema: JsonObject, value: Json) => SchemaProblem | undefined
}

interface SchemaSearch extends JsonSchemaCheck {
  readonly found: Violation[]
  /** One for all findings: its limit bounds their cost. */
  readonly suggest: ReturnType<typeof createSuggester>
}

/**
 * Checks arguments of jobs and tools, and bodies of unified writes, against the keywords of JSON Schema that are enforced: `type`, `enum`, `const`, bounds of
 * numbers, lengths of texts and lists, `nullable` of OpenAPI 3.0, `properties`, `required`, `additionalProperties`, `items`. Any other keyword allows anything.
 *
 * `required` is a list of names as in JSON Schema, or a boolean on the property itself, as many tools write it. Numbers are compared
 * by their digits: `1.0` is `1`.
 *
 * @returns what is wrong and what to do about it, with the name of the keyword as rule; empty: nothing
 */
export function checkJsonSchema(schema: JsonObject, value: Json, check: JsonSchemaCheck): readonly Violation[] {
  const search: SchemaSearch = { ...check, found: [], suggest: createSuggester() }
  visit(search, schema, value, check.path ?? '', 0)
  return search.found
}

function visit(search: SchemaSearch, schema: JsonObject, value: Json, path: string, depth: number): void {
  if (isFull(search) || depth > JSON_DEPTH_MAX) return
  const problem = search.findFurther?.(schema, value) ?? problemOf(search, schema, value)
  if (problem !== undefined) {
    search.found.push({ field: path, ...problem })
    return
  }
  if (Array.isArray(value) && isJsonObject(schema.items)) {
    for (const [at, item] of value.entries()) {
      if (isFull(search)) return
      visit(search, schema.items, item, `${path}[${at}]`, depth + 1)
    }
  } else if (isJsonObject(value)) visitProperties(search, schema, value, path, depth)
}

function isFull({ found, findingsMax }: SchemaSearch): boolean {
  return found.length >= findingsMax
}

function visitProperties(
  search: SchemaSearch,
  schema: JsonObject,
  value: JsonObject,
  path: string,
  depth: number,
): void {
  const { additionalProperties } = schema
  const properties = propertiesOf(schema)
  for (const name of requiredOf(schema))
    if (isMissing(search, value, name, depth === 0) && !isFull(search))
      search.found.push({ field: join(path, name), description: 'is required', rule: 'required' })
  for (const [name, item] of Object.entries(value)) {
    // A client may send a million names, and a suggestion for each costs a comparison with all arguments.
    if (isFull(search)) return
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (isJsonObject(known)) visitMember(search, known, item, join(path, name), depth + 1)
    else if (additionalProperties === false) {
      const near = search.suggest(name, Object.keys(properties))
      const description = search.describeUnknown?.(near) ?? `is not an argument${near}`
      search.found.push({ field: join(path, name), description, rule: 'unknown_field' })
    } else if (isJsonObject(additionalProperties))
      visit(search, additionalProperties, item, join(path, name), depth + 1)
  }
}

/** Whether an object lacks a member that it must have. */
function isMissing(search: SchemaSearch, value: JsonObject, name: string, isOutermost: boolean): boolean {
  if (!Object.hasOwn(value, name)) return !(isOutermost && search.isPartial === true)
  return search.isNullAbsent === true && value[name] === null
}

function visitMember(search: SchemaSearch, schema: JsonObject, value: Json, path: string, depth: number): void {
  if (value !== null || search.isNullAbsent !== true) {
    visit(search, schema, value, path, depth)
    return
  }
  const problem = search.findFurther?.(schema, value)
  if (problem !== undefined) search.found.push({ field: path, ...problem })
}

/** The properties that a schema declares. */
export function propertiesOf(schema: JsonObject): JsonObject {
  return isJsonObject(schema.properties) ? schema.properties : {}
}

/** The types that a schema allows; empty: any. */
export function typesOf({ type }: JsonObject): readonly string[] {
  return (Array.isArray(type) ? type : [type]).filter((each): each is string => typeof each === 'string')
}

function requiredOf(schema: JsonObject): ReadonlySet<string> {
  const listed = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : []
  const marked = Object.entries(propertiesOf(schema)).flatMap(([name, property]) =>
    isJsonObject(property) && property.required === true ? name : [],
  )
  return new Set([...listed, ...marked])
}

function join(path: string, name: string): string {
  return formatDotPath([name], path)
}

function problemOf({ suggest }: SchemaSearch, schema: JsonObject, value: Json): SchemaProblem | undefined {
  if (value === null && schema.nullable === true) return undefined
  const types = typesOf(schema)
  if (types.length > 0 && !types.some((type) => isOfType(type, value)))
    return { description: `must be ${types.join(' or ')}, not ${typeOf(value)}`, rule: 'type' }
  const { enum: values, const: only } = schema
  if (Array.isArray(values) && !values.some((each) => isSameValue(each, value)))
    return { description: mustBeOneOf(value, values.map(textOfChoice), suggest), rule: 'enum' }
  if (only !== undefined && !isSameValue(only, value))
    return { description: `must be ${JSON.stringify(only)}`, rule: 'const' }
  if (isJsonNumber(value)) return numberProblem(schema, toDouble(value))
  if (typeof value === 'string') return countProblem(schema, ['minLength', 'maxLength'], value.length, 'character')
  if (Array.isArray(value)) return countProblem(schema, ['minItems', 'maxItems'], value.length, 'item')
  return undefined
}

function typeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isJsonNumber(value)) return decimalForm(value).exponent >= 0 ? 'integer' : 'number'
  return typeof value
}

function isOfType(type: string, value: Json): boolean {
  return type === typeOf(value) || (type === 'number' && isJsonNumber(value))
}

/** Equality of JSON Schema: `1.0` is `1`. */
function isSameValue(one: Json, other: Json): boolean {
  if (isJsonNumber(one) && isJsonNumber(other)) return decimalForm(one).text === decimalForm(other).text
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

function numberProblem(schema: JsonObject, value: number): SchemaProblem | undefined {
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
): SchemaProblem | undefined {
  const [min, max] = [schema[least], schema[most]]
  if (isJsonNumber(min) && count < toDouble(min))
    return { description: `must have at least ${formatQuantity(toDouble(min), noun)}`, rule: least }
  if (isJsonNumber(max) && count > toDouble(max))
    return { description: `must have at most ${formatQuantity(toDouble(max), noun)}`, rule: most }
  return undefined
}

function bound(limit: string, rule: string): SchemaProblem {
  return { description: `must be ${limit}`, rule }
}
