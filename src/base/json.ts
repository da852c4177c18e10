import { isJsonNumber, JsonNumber } from './json-number.ts'

/** A value as JSON knows it. A number that a double would change is a `JsonNumber`, every other one a `number`. */
export type Json = string | number | JsonNumber | boolean | null | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** Keys that could reach a prototype when objects are merged; refused wherever a client hands in JSON. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** Deepest nesting of a JSON object a client may store; a binary protobuf round trip still survives it. */
export const JSON_DEPTH_MAX = 32

/** Largest exponent of a number a client may store, either way; `jsonb` writes numbers in full when it is read. */
const EXPONENT_MAX = 400
const EXPONENT = /[eE]([+-]?\d+)$/

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

/**
 * Merges `layer` over `base`: objects merge, arrays and scalars replace, `null` removes the key.
 *
 * As a patch of one stored layer this is RFC 7396. Neither argument is changed; `FORBIDDEN_KEYS` are dropped, whatever let
 * them in.
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

/** A stable text of the value: equal for equal values, whatever the order of their keys. Numbers are compared as text. */
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

/** One reason why a JSON value may not be stored, at `path` (dotted, array indexes in brackets). */
export interface JsonFinding {
  readonly path: string
  readonly rule: 'depth' | 'exponent' | 'finite' | 'forbidden_key' | 'nul' | 'surrogate'
  readonly description: string
}

/** Findings about one value; one of garbage has as many as it has parts. */
const FINDINGS_MAX = 100

/**
 * Finds what a client may not store, the first 100 of it: nesting beyond `JSON_DEPTH_MAX`, NaN or Infinity (a binary client
 * can send them and no later answer could be written), exponents beyond `EXPONENT_MAX`, keys that reach prototypes, NUL
 * (PostgreSQL refuses it), lone surrogates.
 *
 * @param path prefix of the reported paths
 */
export function findUnstorable(value: Json, path: string, depth = 0): JsonFinding[] {
  const findings: JsonFinding[] = []
  collectUnstorable(value, path, depth, findings)
  return findings
}

function collectUnstorable(value: Json, path: string, depth: number, findings: JsonFinding[]): void {
  if (typeof value === 'string') findings.push(...findUnstorableText(value, path))
  else if (isJsonNumber(value)) findings.push(...findUnstorableNumber(value, path))
  else if (typeof value !== 'object' || value === null) return
  else if (depth >= JSON_DEPTH_MAX)
    findings.push({ path, rule: 'depth', description: `is nested deeper than ${JSON_DEPTH_MAX} levels` })
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) {
      if (findings.length >= FINDINGS_MAX) return
      collectUnstorable(item, `${path}[${index}]`, depth + 1, findings)
    }
  else
    for (const [key, item] of Object.entries(value)) {
      if (findings.length >= FINDINGS_MAX) return
      const at = path === '' ? key : `${path}.${key}`
      if (FORBIDDEN_KEYS.has(key))
        findings.push({ path: at, rule: 'forbidden_key', description: `uses the reserved key ${key}` })
      else {
        findings.push(...findUnstorableText(key, at))
        collectUnstorable(item, at, depth + 1, findings)
      }
    }
}

function findUnstorableNumber(value: number | JsonNumber, path: string): JsonFinding[] {
  if (typeof value === 'number')
    return Number.isFinite(value) ? [] : [{ path, rule: 'finite', description: 'must be a finite number' }]
  const description = `must be a number with an exponent from -${EXPONENT_MAX} to ${EXPONENT_MAX}`
  return isStorableNumber(value) ? [] : [{ path, rule: 'exponent', description }]
}

/** Whether `jsonb` can hold the number without growing out of proportion. */
export function isStorableNumber({ text }: JsonNumber): boolean {
  return Math.abs(Number(EXPONENT.exec(text)?.[1] ?? 0)) <= EXPONENT_MAX
}

/** The two kinds of text that storage or an answer cannot hold. */
export function findUnstorableText(text: string, path: string): JsonFinding[] {
  if (text.includes('\u0000')) return [{ path, rule: 'nul', description: 'must not contain the NUL character' }]
  if (!text.isWellFormed())
    return [{ path, rule: 'surrogate', description: 'must be well-formed Unicode (no lone surrogates)' }]
  return []
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
      left = lengthLeft((value as JsonObject)[key] ?? null, left - key.length - 3 - comma, depth - 1)
      if (left < 0) return left
      comma = 1
    }
  return left
}
