import { isJsonObject, type Json, type JsonObject, toDouble } from '../base/index.ts'
import { type AstNode, isNode } from './parse.ts'

/** A value of an expression: JSON, or nothing. */
export type Value = Json | undefined

/** A node compiled to a closure. */
export type CompiledNode = (frame: EvaluationFrame) => Value

/** State of one evaluation. */
export interface EvaluationFrame {
  readonly input: JsonObject
  /** JSONata's context, in which names are looked up: the input, or the element that an object is constructed from. */
  context: Value
  /** Elements of the arrays that are being mapped, multiplied: a part that is equal for all of them is repeated so often. */
  copies: number
  /** Values of variables by name. */
  readonly bindings: JsonObject
  /** Gas left, in characters and elements; every operation above constant time is charged for its operand. */
  gas: number
}

/** Enough to read every character of an ordinary response; using all of it takes a few milliseconds. */
export const GAS_LIMIT = 262_144

/** Testing whether an object is empty makes V8 list its keys, whose number is not known before. */
const OBJECT_CHECK_GAS = GAS_LIMIT / 16

/** Per reference to a part of the input in the result: each is stringified in full. */
export const SHARED_CONTAINER_GAS = GAS_LIMIT / 8

/** Longest text that is concatenated inline. */
const TEXT_LENGTH_MAX = 65_536

/** Thrown to bail out; allocated once, because its stack is never read. */
const BAIL_OUT_ERROR = new Error('the inline evaluator bailed out')

/**
 * Bails out: leaves the evaluation (or, while compiling, the expression) to the sandbox.
 *
 * Errors too: the sandbox runs JSONata itself, so that codes, messages and positions are the real ones.
 */
export function bailOut(): never {
  throw BAIL_OUT_ERROR
}

/** Whether something was thrown by `leave`. */
export function isBailOut(error: unknown): boolean {
  return error === BAIL_OUT_ERROR
}

/** Charges gas for an operation; bails out when there is too little. */
export function charge(frame: EvaluationFrame, cost: number): void {
  frame.gas -= cost
  if (frame.gas < 0) bailOut()
}

/** The part as a node, or bails out. */
export function asNode(part: unknown): AstNode {
  return isNode(part) ? part : bailOut()
}

/** The part as a list of nodes, or bails out. */
export function asNodes(part: unknown): readonly AstNode[] {
  return Array.isArray(part) && part.every(isNode) ? part : bailOut()
}

/**
 * Bails out when a node has any property beyond the named ones.
 *
 * JSONata adds predicates, groupings, sort orders, focus and index variables to nodes as further properties. An allow list
 * stays correct when a version adds another.
 */
export function assertKeys(node: AstNode, properties: readonly string[]): void {
  for (const key of Object.keys(node)) {
    if (!properties.includes(key) && node[key] !== undefined) bailOut()
  }
}

/** Keys by which JSONata recognises its own functions; it treats data with these keys specially. */
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

/** The effective boolean of a value, `undefined` for none: `$boolean` of JSONata. Bails out for arrays with elements. */
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

/** The number as a finite double, or bails out. */
export function asNumber(given: Value): number {
  const value = toDouble(given)
  return typeof value === 'number' && Number.isFinite(value) ? value : bailOut()
}

/** The text, or bails out. */
export function asText(value: Value): string {
  return typeof value === 'string' ? value : bailOut()
}

/** A scalar as `$string` and `&` write it; nothing is the empty text. Bails out for objects and arrays. */
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

/** Charges for the length of a text and returns the text. */
export function charged(frame: EvaluationFrame, text: string): string {
  charge(frame, text.length)
  return text
}

/** Concatenates two texts; bails out above a length, which ends repeated doubling. */
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
