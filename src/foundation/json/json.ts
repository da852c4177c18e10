import { JsonNumber } from './json-number.ts'

declare global {
  interface JSON {
    /** Like the two-argument form; `context.source` is the source text of a primitive. */
    parse(text: string, reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown): Json
  }
}

/** A JSON value. A number that a double would change is a `JsonNumber`, every other one a `number`. */
export type Json = string | number | JsonNumber | boolean | null | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** Keys that could pollute a prototype when objects are merged; rejected in JSON of clients. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Deepest nesting of a JSON object a client may store; a binary protobuf round trip still survives it. */
export const JSON_DEPTH_MAX = 32

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

/**
 * Merges `layer` over `base`: objects merge, arrays and scalars replace, `null` removes the key.
 *
 * As a patch of one stored layer this is RFC 7396. Neither argument is changed; `FORBIDDEN_KEYS` are dropped.
 */
export function deepMerge(base: JsonObject, layer: JsonObject): JsonObject {
  const merged: Record<string, Json> = { ...base }
  for (const [key, value] of Object.entries(layer)) {
    if (FORBIDDEN_KEYS.has(key)) continue
    const below = Object.hasOwn(base, key) ? base[key] : undefined
    if (value === null) delete merged[key]
    else if (isJsonObject(value)) merged[key] = deepMerge(isJsonObject(below) ? below : {}, value)
    else merged[key] = value
  }
  return merged
}

/** Merges `above` over `base` as a value, not as a patch: objects merge, everything else replaces, `null` is a value. */
export function overlay(base: JsonObject, above: JsonObject): JsonObject {
  const merged: Record<string, Json> = { ...base }
  for (const [key, value] of Object.entries(above)) {
    if (FORBIDDEN_KEYS.has(key)) continue
    const below = Object.hasOwn(base, key) ? base[key] : undefined
    merged[key] = isJsonObject(value) && below !== undefined && isJsonObject(below) ? overlay(below, value) : value
  }
  return merged
}

/** Canonical JSON: equal values have equal texts, independent of the order of keys. Numbers are compared as text. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (isJsonObject(value)) {
    const entries = Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`)
    return `{${entries.join(',')}}`
  }
  return JSON.stringify(value)
}

/**
 * Whether a value has more than `lengthMax` characters as JSON, or nests deeper than `depthMax`. Counted without building
 * the text, and no further than the limit: texts by their length without escapes, everything else as it is written.
 */
export function exceedsJsonSize(value: Json, lengthMax: number, depthMax = Number.POSITIVE_INFINITY): boolean {
  return lengthLeft(value, lengthMax, depthMax) < 0
}

/** What is left of a length after the value; negative when it is too long or too deep. Plain loops, at a tenth of the cost of printing. */
function lengthLeft(value: Json, length: number, depth: number): number {
  if (depth < 0) return -1
  if (typeof value === 'string') return length - value.length - 2
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return length - String(value).length
  let left = length - 2
  let comma = 0
  if (Array.isArray(value))
    for (const item of value as readonly Json[]) {
      left = lengthLeft(item, left - comma, depth - 1)
      if (left < 0) return left
      comma = 1
    }
  else
    for (const key in value as JsonObject) {
      const item = (value as JsonObject)[key] ?? null
      left -= key.length + 3 + comma
      left = typeof item === 'string' && depth > 0 ? left - item.length - 2 : lengthLeft(item, left, depth - 1)
      if (left < 0) return left
      comma = 1
    }
  return left
}

/** The value with every number as the nearest double, for code that knows doubles only; the same object when nothing changes. */
export function toDoubles(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof JsonNumber) return finite(value.valueOf())
  if (Array.isArray(value)) {
    const items = value.map(toDoubles)
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  const entries = Object.entries(value).map(([key, item]) => [key, toDoubles(item), item] as const)
  return entries.some(([, double, item]) => double !== item)
    ? Object.fromEntries(entries.map(([key, double]) => [key, double]))
    : value
}

/** JSON has no infinity: beyond the range of a double the largest one is the nearest. */
function finite(double: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, double))
}

/** Whether two JSON scalars are the same; numbers as text. */
export function isSameScalar(one: Json | undefined, other: Json | undefined): boolean {
  if (one instanceof JsonNumber && other instanceof JsonNumber) return one.text === other.text
  return one === other
}
