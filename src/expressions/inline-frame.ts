import { isJsonObject, type Json, type JsonObject, toDouble } from '../base/index.ts'
import type { AstNode } from './parse.ts'

/** What an expression works on: JSON, or nothing. */
export type Value = Json | undefined

/** One compiled node. */
export type CompiledNode = (frame: EvaluationFrame) => Value

/** One evaluation. */
export interface EvaluationFrame {
  readonly roots: JsonObject
  /** What names are looked up in: the roots, or the element that an object is being made of. */
  context: Value
  /** How many elements are gone through where this is: what does not depend on the element is repeated so often. */
  copies: number
  /** Values of variables by name. */
  readonly bindings: JsonObject
  /** Characters and elements that may still be looked at; every operation that is not constant pays for its operand. */
  gas: number
}

/** Enough for a look at every character of an ordinary answer; spent whole, it takes a few milliseconds. */
export const GAS_LIMIT = 262_144

/** Asking whether an object is empty makes the engine list its keys, whose number is not known before. */
const OBJECT_CHECK_GAS = GAS_LIMIT / 16

/** A result may point at parts of the input this many times; each copy would be written out in full. */
export const SHARED_CONTAINER_GAS = GAS_LIMIT / 8

/** Longest text that is put together here. */
const TEXT_LENGTH_MAX = 65_536

/** Thrown where this lane does not vouch for the result; allocated once, as there is nobody to read its stack. */
const BAIL_OUT_ERROR = new Error('the expression left the fast lane')

/**
 * Gives the evaluation (or, while compiling, the expression) to the sandbox.
 *
 * Errors go that way too: the sandbox runs JSONata itself, so codes, messages and positions are the real ones.
 */
export function bailOut(): never {
  throw BAIL_OUT_ERROR
}

/** Whether something was thrown by `leave`. */
export function isBailOut(error: unknown): boolean {
  return error === BAIL_OUT_ERROR
}

/** Pays for an operation; leaves when the fuel is gone. */
export function charge(frame: EvaluationFrame, cost: number): void {
  frame.gas -= cost
  if (frame.gas < 0) bailOut()
}

/** Whether a part of the tree is a node. */
export function isNode(part: unknown): part is AstNode {
  return typeof part === 'object' && part !== null && 'type' in part && typeof part.type === 'string'
}

/** The part as a node; leaves when it is none. */
export function asNode(part: unknown): AstNode {
  return isNode(part) ? part : bailOut()
}

/** The part as a list of nodes; leaves when it is none. */
export function asNodes(part: unknown): readonly AstNode[] {
  return Array.isArray(part) && part.every(isNode) ? part : bailOut()
}

/**
 * Leaves when a node carries anything beyond the named properties.
 *
 * JSONata hangs predicates, groupings, sort orders, focus and index variables on nodes as extra properties. Naming what is
 * known, instead of what is not, keeps this lane correct when a version adds another.
 */
export function assertKeys(node: AstNode, properties: readonly string[]): void {
  for (const key of Object.keys(node)) {
    if (!properties.includes(key) && node[key] !== undefined) bailOut()
  }
}

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
