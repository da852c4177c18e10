import type { Json } from './json.ts'
import { JsonNumber } from './json-number.ts'

/**
 * Whether a value has more than `lengthMax` characters as JSON, or nests deeper than `depthMax`. Counted without building
 * the text, and no further than the limit: texts by their length without escapes, everything else as it is written.
 */
export function exceedsJsonSize(value: Json, lengthMax: number, depthMax: number): boolean {
  let length = 0
  const measure = (item: Json, depth: number): boolean => {
    if (length > lengthMax || depth > depthMax) return true
    if (typeof item === 'string') length += item.length + 2
    else if (typeof item !== 'object' || item === null || item instanceof JsonNumber) length += String(item).length
    else if (Array.isArray(item)) return inside(item.length) || item.some((inner: Json) => measure(inner, depth + 1))
    else {
      const keys = Object.keys(item)
      if (inside(keys.length)) return true
      return keys.some((key) => {
        length += key.length + 3
        return measure((item as Readonly<Record<string, Json>>)[key] ?? null, depth + 1)
      })
    }
    return length > lengthMax
  }
  /** Brackets and commas. */
  const inside = (count: number) => {
    length += count + 1
    return length > lengthMax
  }
  return measure(value, 0)
}
