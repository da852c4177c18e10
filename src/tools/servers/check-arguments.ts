import type { Violation } from '../../foundation/base/index.ts'
import {
  checkJsonSchema,
  isJsonNumber,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
  jsonNumberOf,
  parseJson,
  propertiesOf,
} from '../../foundation/json/index.ts'

/** A model repairs a few arguments at a time. */
const VIOLATIONS_MAX = 20

/**
 * Checks the arguments of a tool against its input schema; the keywords that `simplifySchema` keeps, without `format`, which third
 * parties check themselves.
 *
 * @returns what is wrong, at most 20 violations; empty: nothing
 */
export function checkArguments(schema: JsonObject, given: JsonObject): readonly Violation[] {
  return checkJsonSchema(schema, given, { findingsMax: VIOLATIONS_MAX })
}

/** Longer lists are taken as they are: no model writes them. */
const ITEMS_READ_MAX = 1_000

/** The texts that numbers have themselves: no sign, zero, exponent or space too many. */
const CANONICAL = {
  integer: /^(0|-?[1-9]\d*)$/,
  number: /^(0|-?[1-9]\d*|-?(0|[1-9]\d*)\.\d*[1-9])$/,
} as const
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

/**
 * The arguments of a tool as its input schema has them: models write numbers and booleans as texts, and ids that are texts as
 * numbers, and some clients lists and objects as JSON texts. Converted is what can be meant in one way only: a text that is exactly
 * the number, boolean, list or object that is asked for, and a number where a text is. Anything else stays what it is, for `checkArguments` to reject.
 */
export function readArguments(schema: JsonObject, given: JsonObject): JsonObject {
  return readObject(schema, given, 0)
}

function readObject(schema: JsonObject, given: JsonObject, depth: number): JsonObject {
  const properties = propertiesOf(schema)
  const { additionalProperties: others } = schema
  // Of names that the schema does not know there may be many.
  const names = isJsonObject(others)
    ? Object.keys(given)
    : Object.keys(properties).filter((name) => Object.hasOwn(given, name))
  const changed = names.flatMap((name) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : others
    const value = given[name] as Json
    const read = isJsonObject(known) ? readValue(known, value, depth + 1) : value
    return read === value ? [] : [[name, read] as const]
  })
  return changed.length === 0 ? given : { ...given, ...Object.fromEntries(changed) }
}

function readValue(schema: JsonObject, value: Json, depth: number): Json {
  if (depth > JSON_DEPTH_MAX) return value
  const { type, items } = schema
  if (typeof value === 'string') return readText(schema, value, depth)
  if (isJsonNumber(value)) return type === 'string' ? String(value) : value
  if (Array.isArray(value)) {
    const isRead = isJsonObject(items) && value.length <= ITEMS_READ_MAX
    return isRead ? value.map((item) => readValue(items, item, depth + 1)) : value
  }
  return isJsonObject(value) ? readObject(schema, value, depth) : value
}

function readText(schema: JsonObject, text: string, depth: number): Json {
  const { type } = schema
  if (type === 'array' || type === 'object') {
    const value = parsedText(text)
    const isAsked = type === 'array' ? Array.isArray(value) : isJsonObject(value)
    return isAsked ? readValue(schema, value, depth) : text
  }
  if (type === 'boolean') return BOOLEANS.get(text) ?? text
  if (type !== 'integer' && type !== 'number') return text
  return CANONICAL[type].test(text) ? jsonNumberOf(text) : text
}

/** @returns the text itself when it is no JSON */
function parsedText(text: string): Json {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
