import { isJsonObject, type Json, type JsonObject, withDouble } from '../../../base/index.ts'
import { type Frame, leave, OBJECT_CHECK_FUEL, spend, TEXT_LENGTH_MAX, type Value } from './frame.ts'

/** Marks by which JSONata recognises its own functions and streams; data that carries them is treated specially there. */
const FUNCTION_MARKS = ['_jsonata_function', '_jsonata_lambda'] as const

/** An object that is neither an array nor null, and is not mistaken for a function by JSONata. */
export function isPlainObject(value: Value): value is JsonObject {
  if (!isJsonObject(value)) return false
  for (const mark of FUNCTION_MARKS) if (value[mark] === true) leave()
  return true
}

/** `Array.isArray` for read-only JSON. */
export function isArray(value: Value): value is readonly Json[] {
  return Array.isArray(value)
}

/** The effective boolean of a value, `undefined` for none: `$boolean` of JSONata. Arrays with elements leave. */
export function booleanOf(frame: Frame, given: Value): boolean | undefined {
  const value = withDouble(given)
  switch (typeof value) {
    case 'undefined':
      return undefined
    case 'boolean':
      return value
    case 'string':
      return value.length > 0
    case 'number':
      return Number.isFinite(value) ? value !== 0 : leave()
    case 'object':
      return value === null ? false : isNotEmpty(frame, value)
  }
}

/** The number as a double, when the value is one that JSON can hold; leaves otherwise. */
export function requireNumber(given: Value): number {
  const value = withDouble(given)
  return typeof value === 'number' && Number.isFinite(value) ? value : leave()
}

/** The text, when the value is one; leaves otherwise. */
export function requireText(value: Value): string {
  return typeof value === 'string' ? value : leave()
}

/** A scalar as `$string` and `&` write it; nothing is the empty text. Objects and arrays leave. */
export function textOf(given: Value): string {
  const value = withDouble(given)
  switch (typeof value) {
    case 'undefined':
      return ''
    case 'string':
      return value
    case 'number':
      return numberText(requireNumber(value))
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      return value === null ? 'null' : leave()
  }
}

/** Pays for a text and returns it; leaves when it is longer than what this lane handles. */
export function paid(frame: Frame, text: string): string {
  spend(frame, text.length)
  return text
}

/** Joins two texts; doubling a text again and again ends at a length where the sandbox takes over. */
export function joined(left: string, right: string): string {
  return left.length + right.length > TEXT_LENGTH_MAX ? leave() : left + right
}

/** JSONata writes fractions with 15 significant digits, so that 0.1 + 0.2 reads 0.3. */
function numberText(value: number): string {
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(15)))
}

function isNotEmpty(frame: Frame, value: JsonObject | readonly Json[]): boolean {
  if (isArray(value)) return value.length === 0 ? false : leave()
  if (!isPlainObject(value)) return leave()
  spend(frame, OBJECT_CHECK_FUEL)
  for (const key in value) if (Object.hasOwn(value, key)) return true
  return false
}
