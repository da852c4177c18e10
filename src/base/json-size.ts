import type { Json, JsonObject } from './json.ts'
import { JsonNumber } from './json-number.ts'

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
