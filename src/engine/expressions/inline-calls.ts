import { type Json, type JsonObject, toDouble } from '../../foundation/json/index.ts'
import {
  asNode,
  asNodes,
  assertKeys,
  bailOut,
  booleanOf,
  type CompiledNode,
  type CompileScope,
  charge,
  charged,
  chargeSize,
  compileBody,
  compileReference,
  type EvaluationFrame,
  GAS_LIMIT,
  isArray,
  isContainer,
  isPlainObject,
  keysOf,
  toSequence,
  type Value,
} from './inline-frame.ts'
import { INLINE_FUNCTIONS } from './inline-functions.ts'
import { type AstNode, isNode } from './parse.ts'
import { MAPPING_FUNCTIONS } from './sandbox/mapping-functions.ts'

/** Functions whose sequences JSONata leaves as they are when the call ends a lambda. */
const SEQUENCE_FUNCTIONS: ReadonlySet<string> = new Set(['map', 'filter', 'keys', 'distinct'])

/**
 * Compiles a call; bails out for a function or a number of arguments that is not in the tables.
 *
 * @param isTail the call ends a lambda
 */
export function compileCall(scope: CompileScope, node: AstNode, isTail = false): CompiledNode {
  assertKeys(node, ['type', 'name', 'value', 'position', 'arguments', 'procedure'])
  const procedure = asNode(node.procedure)
  assertKeys(procedure, ['type', 'value', 'position'])
  const name = variableName(procedure)
  // The variable may hold anything.
  if (scope.variables.has(name) || (isTail && SEQUENCE_FUNCTIONS.has(name))) return bailOut()
  const args = asNodes(node.arguments)
  if (name === 'map' || name === 'filter') return compileLoop(scope, name, args)
  return MAPPING_FUNCTIONS.has(name) ? compileMappingCall(scope, name, args) : compileNative(scope, name, args)
}

function compileNative(scope: CompileScope, name: string, nodes: readonly AstNode[]): CompiledNode {
  const native = INLINE_FUNCTIONS.get(name)
  // With fewer arguments than declared JSONata takes the context; such calls are rare.
  if (!native || nodes.length < native.argumentsMin || nodes.length > native.argumentsMax) return bailOut()
  const compile = name === 'append' ? compileReference : scope.compile
  const [first = MISSING, second = MISSING, third = MISSING] = nodes.map((node) => compile(scope, node))
  const { call } = native
  return (frame) => call(frame, argument(first(frame)), argument(second(frame)), argument(third(frame)))
}

const MISSING: CompiledNode = () => undefined

/** JSONata wraps functions among the arguments; bails out for data that looks like one. */
function argument(value: Value): Value {
  return !isContainer(value) || isArray(value) || isPlainObject(value) ? value : bailOut()
}

/**
 * `$map(list, function($element, $index) { … })` and `$filter`, with the lambda in place: JSONata passes as many arguments as it
 * declares.
 */
function compileLoop(
  scope: CompileScope,
  name: 'map' | 'filter',
  [list, lambda, ...more]: readonly AstNode[],
): CompiledNode {
  if (!list || lambda?.type !== 'lambda' || lambda.thunk !== undefined || more.length > 0) return bailOut()
  assertKeys(lambda, ['type', 'position', 'arguments', 'body'])
  const names = asNodes(lambda.arguments).map(variableName)
  if (names.length === 0 || names.length > 2 || names[0] === names[1]) return bailOut()
  const source = scope.compile(scope, list)
  const slot = scope.compilation.slots
  scope.compilation.slots += names.length
  const variables = new Map([...scope.variables, ...names.map((each, at) => [each, slot + at] as const)])
  const inner = { ...scope, variables }
  const { evaluate, cost } = compileBody(inner, asNode(lambda.body))
  return (frame) => {
    const value = argument(source(frame))
    if (value === undefined) return undefined
    const items = isArray(value) ? value : [value]
    charge(frame, items.length * cost)
    const results: Json[] = []
    for (const [index, item] of items.entries()) {
      frame.locals[slot] = item
      if (names.length === 2) frame.locals[slot + 1] = index
      const result = evaluate(frame)
      if (name === 'map' && result !== undefined) results.push(result)
      if (name === 'filter' && booleanOf(frame, result) === true) results.push(item)
    }
    return toSequence(results)
  }
}

function variableName(node: AstNode): string {
  return node.type === 'variable' && typeof node.value === 'string' && node.value !== '' && node.value !== '$'
    ? node.value
    : bailOut()
}

/** Functions that look at their arguments but not into them. */
const SHALLOW: ReadonlySet<string> = new Set(['mapValue', 'firstNonEmpty'])

/** Functions whose numbers are read by their value; of others an argument may be a number as it is written. */
const SCALAR: ReadonlySet<string> = new Set(['isoDate', 'dateOnly', 'decimal', 'minorToDecimal', 'decimalToMinor'])

/** Compiles a call of a function for mappings; bails out for another number of arguments. */
function compileMappingCall(scope: CompileScope, name: string, nodes: readonly AstNode[]): CompiledNode {
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
    return argument(call(...values) as Value)
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
    if (!isContainer(value)) return typeof value === 'string' ? charged(frame, value) : value
    if (!isArray(value) && !isPlainObject(value)) bailOut()
    if (!isShallow) chargeSize(frame, value)
    else if (isArray(value)) charge(frame, value.length)
    else keysOf(frame, value)
    return value
  }
}

const NO_INPUT: JsonObject = {}
const NO_FRAME: EvaluationFrame = { input: NO_INPUT, context: NO_INPUT, bindings: NO_INPUT, locals: [], gas: GAS_LIMIT }

/** An object of literals: `{"OPEN": "open"}`. */
function isConstant({ type, value, lhs }: AstNode): boolean {
  if (type !== 'unary' || value !== '{' || !Array.isArray(lhs)) return false
  return lhs.every((pair) => Array.isArray(pair) && isNode(pair[1]) && LITERALS.has(pair[1].type))
}

const LITERALS: ReadonlySet<string> = new Set(['string', 'number', 'value'])
