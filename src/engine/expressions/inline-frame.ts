import { isJsonObject, type Json, JsonNumber, type JsonObject, toDouble } from '../../foundation/json/index.ts'
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
  /** Values of variables by name. */
  readonly bindings: JsonObject
  /** Values of the parameters of lambdas, by slot. */
  readonly locals: Value[]
  /** Gas left, in characters and elements; every operation above constant time is charged for its operand. */
  gas: number
}

/** What names mean at a place of the expression, and compiles what is there. */
export interface CompileScope {
  readonly compile: (scope: CompileScope, node: AstNode) => CompiledNode
  /** Slots of the parameters of lambdas, by name. */
  readonly variables: ReadonlyMap<string, number>
  /** Counters of the whole expression. */
  readonly compilation: {
    nodes: number
    /** Total length of keys and literals, which each constructed element repeats. */
    characters: number
    slots: number
  }
}

/** What runs once per element. */
export interface CompiledBody {
  readonly evaluate: CompiledNode
  /** Gas of one run: its nodes and characters. */
  readonly cost: number
}

/** Compiles what runs once per element and whose values are put into the result. */
export function compileBody(scope: CompileScope, node: AstNode): CompiledBody {
  const { compilation } = scope
  const before = compilation.nodes + compilation.characters
  const evaluate = compileReference(scope, node)
  return { evaluate, cost: compilation.nodes + compilation.characters - before }
}

/** Characters of a text in the result for one of gas: texts are shared, and only written out in the end. */
const CHARACTERS_PER_GAS = 8

/**
 * Compiles a part whose value is put into the result: a text, list or object that exists is charged for its size each time,
 * because it is stringified in full wherever it occurs.
 */
export function compileReference(scope: CompileScope, node: AstNode): CompiledNode {
  const evaluate = scope.compile(scope, node)
  if (isConstructor(node)) return evaluate
  return (frame) => {
    const value = evaluate(frame)
    if (typeof value === 'string') charge(frame, value.length / CHARACTERS_PER_GAS)
    else if (isContainer(value)) chargeSize(frame, value)
    return value
  }
}

/** A constructed value is bounded by the expression itself, its parts are charged; also where a condition chooses it. */
function isConstructor({ type, then, else: otherwise }: AstNode): boolean {
  if (type !== 'condition') return type === 'unary'
  return [then, otherwise ?? then].every((branch) => isNode(branch) && isConstructor(branch))
}

/** An array or an object. */
export function isContainer(value: Value): value is JsonObject | readonly Json[] {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber)
}

/** Charges for every element, key and character of a value. */
export function chargeSize(frame: EvaluationFrame, value: JsonObject | readonly Json[]): void {
  charge(frame, frame.gas - sizeLeft(value, frame.gas) + 1)
}

/** What is left of a size after a value; at least 0. */
function sizeLeft(value: Json, size: number): number {
  if (typeof value === 'string') return Math.max(0, size - 1 - value.length)
  if (!isContainer(value)) return Math.max(0, size - 1)
  let left = size - 1
  if (isArray(value)) for (let at = 0; at < value.length && left > 0; at++) left = sizeLeft(value[at] ?? null, left)
  else
    for (const key in value) {
      if (left <= 0) break
      left = sizeLeft(value[key] ?? null, left - key.length)
    }
  return Math.max(0, left)
}

/** Enough to read every character of an ordinary response; using all of it takes a few milliseconds. */
export const GAS_LIMIT = 262_144

/** Longest text that is concatenated inline. */
export const TEXT_LENGTH_MAX = 65_536

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

/** Whether something was thrown by `bailOut`. */
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

/** An object that is neither an array nor null, and is not mistaken for a function by JSONata. */
export function isPlainObject(value: Value): value is JsonObject {
  if (!isJsonObject(value)) return false
  if (isMarkedAsFunction(value)) bailOut()
  return true
}

/** Keys by which JSONata recognises its own functions; it treats data with these keys specially. */
export function isMarkedAsFunction({ _jsonata_function: native, _jsonata_lambda: lambda }: JsonObject): boolean {
  return native === true || lambda === true
}

/** `Array.isArray` for read-only JSON. */
export function isArray(value: Value): value is readonly Json[] {
  return Array.isArray(value)
}

/** The effective boolean of a value, `undefined` for none: `$boolean` of JSONata. */
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
      if (value === null) return false
      return isArray(value) ? isAnyTrue(frame, value) : keysOf(frame, value).length > 0
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

/** Of several elements one must be true; an empty list is false. */
function isAnyTrue(frame: EvaluationFrame, values: readonly Json[]): boolean {
  charge(frame, values.length)
  return values.some((value) => booleanOf(frame, value) === true)
}

/** The keys of an object. Charged afterwards: V8 does not tell their number before it has listed them. */
export function keysOf(frame: EvaluationFrame, value: Value): readonly string[] {
  if (!isPlainObject(value)) return bailOut()
  const keys = Object.keys(value)
  charge(frame, keys.length)
  return keys
}

/** The array as a sequence of JSONata: nothing when it is empty, the element when it is the only one. */
export function toSequence(values: readonly Json[]): Value {
  return values.length > 1 ? values : values[0]
}

/** Bails out for an object that JSONata would take for one of its own, where it looks at that. */
export function assertUnmarked(value: Value): void {
  if (isJsonObject(value) && hasReservedKey(value)) bailOut()
}

/** Keys of data by which JSONata takes it for one of its own objects. No object inherits them, and no JSON is `undefined`. */
export function hasReservedKey({ tupleStream, outerWrapper }: JsonObject): boolean {
  return tupleStream !== undefined || outerWrapper !== undefined
}
