import { isJsonObject, type Json, type JsonObject, toDouble } from '../../../base/index.ts'
import { bailOut, charge, type EvaluationFrame, OBJECT_CHECK_GAS, TEXT_LENGTH_MAX, type Value } from './frame.ts'

/** Marks by which JSONata recognises its own functions and streams; data that carries them is treated specially there. */
const FUNCTION_KEYS = ['_jsonata_function', '_jsonata_lambda'] as const

/** An object that is neither an array nor null, and is not mistaken for a function by JSONata. */
export function isPlainObject(value: Value): value is JsonObject {
  if (!isJsonObject(value)) return false
  for (const mark of FUNCTION_KEYS) if (value[mark] === true) bailOut()
  return true
}

/** `Array.isArray` for read-only JSON. */
export function isArray(value: Value): value is readonly Json[] {
  return Array.isArray(value)
}

/** The effective boolean of a value, `undefined` for none: `$boolean` of JSONata. Arrays with elements leave. */
export function booleanOf(frame: EvaluationFrame, given: Value): boolean | undefined {
  const value = toDouble(given)
  switch (typeof value) {
    case 'undefined':
      return undefined
    case 'boolean':
      return value
    case 'string':
      return value.length > 0
    case 'number':
      return Number.isFinite(value) ? value !== 0 : bailOut()
    case 'object':
      return value === null ? false : isNotEmpty(frame, value)
  }
}

/** The number as a double, when the value is one that JSON can hold; leaves otherwise. */
export function asNumber(given: Value): number {
  const value = toDouble(given)
  return typeof value === 'number' && Number.isFinite(value) ? value : bailOut()
}

/** The text, when the value is one; leaves otherwise. */
export function asText(value: Value): string {
  return typeof value === 'string' ? value : bailOut()
}

/** A scalar as `$string` and `&` write it; nothing is the empty text. Objects and arrays leave. */
export function toText(given: Value): string {
  const value = toDouble(given)
  switch (typeof value) {
    case 'undefined':
      return ''
    case 'string':
      return value
    case 'number':
      return numberText(asNumber(value))
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      return value === null ? 'null' : bailOut()
  }
}

/** Pays for a text and returns it; leaves when it is longer than what this lane handles. */
export function charged(frame: EvaluationFrame, text: string): string {
  charge(frame, text.length)
  return text
}

/** Joins two texts; doubling a text again and again ends at a length where the sandbox takes over. */
export function concatenate(left: string, right: string): string {
  return left.length + right.length > TEXT_LENGTH_MAX ? bailOut() : left + right
}

/** JSONata writes fractions with 15 significant digits, so that 0.1 + 0.2 reads 0.3. */
function numberText(value: number): string {
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(15)))
}

function isNotEmpty(frame: EvaluationFrame, value: JsonObject | readonly Json[]): boolean {
  if (isArray(value)) return value.length === 0 ? false : bailOut()
  if (!isPlainObject(value)) return bailOut()
  charge(frame, OBJECT_CHECK_GAS)
  for (const key in value) if (Object.hasOwn(value, key)) return true
  return false
}
