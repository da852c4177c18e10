import { type Json, JsonNumber, type JsonObject, toDouble } from '../base/index.ts'
import {
  bailOut,
  type CompiledNode,
  charge,
  charged,
  type EvaluationFrame,
  GAS_LIMIT,
  isArray,
  isPlainObject,
  keysOf,
  sizeLeft,
  type Value,
} from './inline-frame.ts'
import type { CompileScope } from './inline-scope.ts'
import { type AstNode, isNode } from './parse.ts'
import { MAPPING_FUNCTIONS } from './sandbox/mapping-functions.ts'

/** Whether it is one of the functions for mappings. */
export function isMappingFunction(name: string): boolean {
  return MAPPING_FUNCTIONS.has(name)
}

/** Functions that look at their arguments but not into them. */
const SHALLOW: ReadonlySet<string> = new Set(['mapValue', 'firstNonEmpty'])

/** Functions whose numbers are read by their value; of others an argument may be a number as it is written. */
const SCALAR: ReadonlySet<string> = new Set(['isoDate', 'dateOnly', 'decimal', 'minorToDecimal', 'decimalToMinor'])

/** Compiles a call of a function for mappings; bails out for another number of arguments. */
export function compileMappingCall(scope: CompileScope, name: string, nodes: readonly AstNode[]): CompiledNode {
  const mapping = MAPPING_FUNCTIONS.get(name)
  if (!mapping || nodes.length < mapping.argumentsMin || nodes.length > mapping.argumentsMax) return bailOut()
  const { call } = mapping
  const args = nodes.map((node) => compileArgument(scope, node, SHALLOW.has(name)))
  const isParser = name === 'jsonParse'
  const takesScalars = SCALAR.has(name)
  return (frame) => {
    const values = args.map((evaluate) => (takesScalars ? toDouble(evaluate(frame)) : evaluate(frame)))
    if (isParser && typeof values[0] === 'string' && values[0].includes('_jsonata_')) return bailOut()
    // Values of JSON, or parts of the arguments, which may look like a function of JSONata.
    const result = call(...values) as Value
    return isContainer(result) && !isArray(result) && !isPlainObject(result) ? bailOut() : result
  }
}

/** An argument whose size is charged; a constant object is built once. */
function compileArgument(scope: CompileScope, node: AstNode, isShallow: boolean): CompiledNode {
  const evaluate = scope.compile(scope, node)
  if (isConstant(node)) {
    const constant = evaluate({ ...NO_FRAME })
    return () => constant
  }
  return (frame) => {
    const value = evaluate(frame)
    if (isContainer(value)) chargeSize(frame, value, isShallow)
    return typeof value === 'string' ? charged(frame, value) : value
  }
}

function isContainer(value: Value): value is JsonObject | readonly Json[] {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber)
}

function chargeSize(frame: EvaluationFrame, value: JsonObject | readonly Json[], isShallow: boolean): void {
  if (!isArray(value) && !isPlainObject(value)) bailOut()
  if (!isShallow) charge(frame, frame.gas - sizeLeft(value, frame.gas) + 1)
  else if (isArray(value)) charge(frame, value.length)
  else keysOf(frame, value)
}

const NO_INPUT: JsonObject = {}
const NO_FRAME: EvaluationFrame = {
  input: NO_INPUT,
  context: NO_INPUT,
  copies: 1,
  bindings: NO_INPUT,
  locals: [],
  sequences: undefined,
  gas: GAS_LIMIT,
}

/** An object of literals: `{"OPEN": "open"}`. */
function isConstant({ type, value, lhs }: AstNode): boolean {
  if (type !== 'unary' || value !== '{' || !Array.isArray(lhs)) return false
  return lhs.every((pair) => Array.isArray(pair) && isNode(pair[1]) && LITERALS.has(pair[1].type))
}

const LITERALS: ReadonlySet<string> = new Set(['string', 'number', 'value'])
