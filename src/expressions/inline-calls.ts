import { type Json, JsonNumber } from '../base/index.ts'
import { COLLECTION_FUNCTIONS } from './inline-collections.ts'
import {
  asNode,
  asNodes,
  assertKeys,
  bailOut,
  booleanOf,
  type CompiledNode,
  charge,
  isArray,
  isPlainObject,
  toSequence,
  type Value,
} from './inline-frame.ts'
import { type InlineFunction, SCALAR_FUNCTIONS } from './inline-functions.ts'
import { compileMappingCall, isMappingFunction } from './inline-mapping-calls.ts'
import {
  type CompileScope,
  compileBody,
  compileReference,
  compileTest,
  lambdaScope,
  variableName,
} from './inline-scope.ts'
import { type AstNode, isNode } from './parse.ts'

const INLINE_FUNCTIONS: ReadonlyMap<string, InlineFunction> = new Map([...SCALAR_FUNCTIONS, ...COLLECTION_FUNCTIONS])

/** Functions whose sequences JSONata leaves as they are when the call ends a lambda. */
const SEQUENCE_FUNCTIONS: ReadonlySet<string> = new Set(['map', 'filter', 'keys', 'distinct'])

/** Whether a node is a call whose sequence may hold one array. */
export function returnsSequence({ procedure }: Readonly<Record<string, unknown>>): boolean {
  return isNode(procedure) && (procedure.value === 'map' || procedure.value === 'filter')
}

/**
 * Compiles a call; bails out for a function or a number of arguments that is not in the tables.
 *
 * @param isTail the call ends a lambda
 */
export function compileCall(scope: CompileScope, node: AstNode, isTail = false): CompiledNode {
  assertKeys(node, ['type', 'name', 'value', 'position', 'arguments', 'procedure', 'keepArray'])
  const procedure = asNode(node.procedure)
  assertKeys(procedure, ['type', 'value', 'position'])
  const name = variableName(procedure)
  // The variable may hold anything.
  if (scope.variables.has(name) || (isTail && SEQUENCE_FUNCTIONS.has(name))) return bailOut()
  const args = asNodes(node.arguments)
  if (name === 'distinct' || node.keepArray === true) scope.compilation.tracksSequences = true
  if (name === 'map') return compileMap(scope, args, node.keepArray === true)
  if (name === 'filter') return compileFilter(scope, args, node.keepArray === true)
  if (node.keepArray !== undefined) return bailOut()
  return isMappingFunction(name) ? compileMappingCall(scope, name, args) : compileNative(scope, name, args)
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
  const isData = typeof value !== 'object' || value === null || isArray(value) || value instanceof JsonNumber
  return isData || isPlainObject(value) ? value : bailOut()
}

/** A lambda that is written as an argument: JSONata passes as many of element and index as it declares. */
function parametersOf(lambda: AstNode | undefined): { readonly names: readonly string[]; readonly body: AstNode } {
  if (lambda?.type !== 'lambda' || lambda.thunk !== undefined) return bailOut()
  assertKeys(lambda, ['type', 'position', 'arguments', 'body'])
  const names = asNodes(lambda.arguments).map(variableName)
  if (names.length === 0 || names.length > 2 || new Set(names).size < names.length) return bailOut()
  return { names, body: asNode(lambda.body) }
}

/** `$map(list, function($element, $index) { … })` */
function compileMap(
  scope: CompileScope,
  [list, lambda, ...more]: readonly AstNode[],
  keepsArray: boolean,
): CompiledNode {
  if (!list || more.length > 0) return bailOut()
  const { names, body } = parametersOf(lambda)
  const source = scope.compile(scope, list)
  const { scope: inner, slots } = lambdaScope(scope, list, names)
  const { evaluate, cost } = compileBody(inner, body)
  return eachElement(source, cost, slots, keepsArray, (frame, _item, results) => {
    const value = evaluate(frame)
    if (value !== undefined) results.push(value)
  })
}

/** `$filter(list, function($element, $index) { … })` */
function compileFilter(
  scope: CompileScope,
  [list, lambda, ...more]: readonly AstNode[],
  keepsArray: boolean,
): CompiledNode {
  if (!list || more.length > 0) return bailOut()
  const { names, body } = parametersOf(lambda)
  const source = scope.compile(scope, list)
  const { scope: inner, slots } = lambdaScope(scope, list, names)
  const { evaluate, cost } = compileTest(inner, body)
  return eachElement(source, cost, slots, keepsArray, (frame, item, results) => {
    if (booleanOf(frame, evaluate(frame)) === true) results.push(item)
  })
}

type ElementVisit = (frame: Parameters<CompiledNode>[0], item: Json, results: Json[]) => void

function eachElement(
  source: CompiledNode,
  cost: number,
  [elementSlot = 0, indexSlot]: readonly number[],
  keepsArray: boolean,
  visit: ElementVisit,
): CompiledNode {
  return (frame) => {
    const value = argument(source(frame))
    if (value === undefined) return undefined
    const list = isArray(value) ? value : [value]
    charge(frame, list.length * cost)
    const outer = frame.copies
    frame.copies = outer * Math.max(1, list.length)
    const results: Json[] = []
    for (const [index, item] of list.entries()) {
      frame.locals[elementSlot] = item
      if (indexSlot !== undefined) frame.locals[indexSlot] = index
      visit(frame, item, results)
    }
    frame.copies = outer
    return toSequence(frame, results, keepsArray)
  }
}
