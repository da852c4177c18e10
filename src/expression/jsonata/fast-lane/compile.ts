import { type Json, JsonNumber, type JsonObject } from '../../../base/index.ts'
import type { AstNode } from '../parse.ts'
import { type Evaluate, type Frame, FUEL, hasLeft, leave, SHARED_CONTAINER_FUEL, spend, type Value } from './frame.ts'
import { compileCall } from './functions.ts'
import { holdsOnly, isNode, nodes, requireNode } from './nodes.ts'
import { compileBinary, compileNegation } from './operators.ts'
import { type Construction, compilePath, compileVariable } from './path.ts'
import { booleanOf, isArray } from './values.ts'

/** The fast lane does not vouch for this evaluation: ask the sandbox. */
export const LEFT: unique symbol = Symbol('left the fast lane')

/**
 * An expression that runs in this process: synchronous, on the roots, in bounded time and memory. It never throws; what
 * would be an error is `LEFT`. The result may share objects with the roots and the values of variables.
 */
export type FastExpression = (roots: JsonObject, bindings?: JsonObject) => Value | typeof LEFT

const NONE: JsonObject = {}

/** More nodes than this are left to the sandbox, whatever they are. */
const NODES_MAX = 256

/**
 * Compiles an expression to closures if it is cheap by construction, `undefined` otherwise.
 *
 * Cheap are paths of names, literals, comparisons, arithmetic, `and or in &`, conditions, constructors with constant keys,
 * bound variables, and calls of functions that are linear in one operand. A node runs once, or in a path once for each
 * element of an array, and whatever costs more than constant time pays from a fixed fuel. No lambda, assignment, regular
 * expression, range, wildcard, filter or sort is among them.
 */
export function compileFast(tree: AstNode): FastExpression | undefined {
  const evaluate = compileOrLeave(tree)
  if (!evaluate) return undefined
  return (roots, bindings = NONE) => {
    try {
      if (isMarked(roots)) leave()
      return evaluate({ roots, context: roots, copies: 1, bindings, fuel: FUEL })
    } catch (error) {
      if (hasLeft(error)) return LEFT
      throw error
    }
  }
}

function compileOrLeave(tree: AstNode): Evaluate | undefined {
  try {
    return compileNode({ nodes: 0, characters: 0 }, tree)
  } catch (error) {
    if (hasLeft(error)) return undefined
    throw error
  }
}

/** Marks on the input by which JSONata would take it for something it is not. */
function isMarked(roots: JsonObject): boolean {
  return Object.hasOwn(roots, 'tupleStream') || Object.hasOwn(roots, 'outerWrapper')
}

interface Compilation {
  nodes: number
  /** Of keys and literals: constructing an element writes them once more. */
  characters: number
}

function compileNode(compilation: Compilation, node: AstNode): Evaluate {
  if (++compilation.nodes > NODES_MAX) leave()
  switch (node.type) {
    case 'string':
    case 'number':
    case 'value':
      return compileLiteral(compilation, node)
    case 'path':
      return compilePath(node, (step) => compileConstruction(compilation, step))
    case 'variable':
      return compileVariable(node)
    case 'binary':
      return compileOperator(compilation, node)
    case 'unary':
      return compileUnary(compilation, node)
    case 'condition':
      return compileCondition(compilation, node)
    case 'function':
      return compileFunction(compilation, node)
    case 'block':
      return compileBlock(compilation, node)
    default:
      return leave()
  }
}

function compileLiteral(compilation: Compilation, node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'value', 'position'])
  const { value } = node
  if (typeof value === 'string') compilation.characters += value.length
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null) {
    return () => value
  }
  return leave()
}

function compileOperator(compilation: Compilation, node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'value', 'position', 'lhs', 'rhs'])
  const left = compileNode(compilation, requireNode(node.lhs))
  const right = compileNode(compilation, requireNode(node.rhs))
  return compileBinary(node.value, left, right)
}

function compileUnary(compilation: Compilation, node: AstNode): Evaluate {
  switch (node.value) {
    case '-':
      holdsOnly(node, ['type', 'value', 'position', 'expression'])
      return compileNegation(compileNode(compilation, requireNode(node.expression)))
    case '[':
      holdsOnly(node, ['type', 'value', 'position', 'expressions'])
      return compileArray(compilation, nodes(node.expressions))
    case '{':
      holdsOnly(node, ['type', 'value', 'position', 'lhs'])
      return compileObject(compilation, node.lhs)
    default:
      return leave()
  }
}

/** An object constructor as a step: it runs once for each element, and each time costs its nodes and what it writes. */
function compileConstruction(compilation: Compilation, node: AstNode): Construction {
  const before = { ...compilation }
  const evaluate = compileNode(compilation, node)
  return { evaluate, cost: compilation.nodes - before.nodes + compilation.characters - before.characters }
}

function compileCondition(compilation: Compilation, node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'position', 'condition', 'then', 'else'])
  const condition = compileNode(compilation, requireNode(node.condition))
  const then = compileNode(compilation, requireNode(node.then))
  const otherwise = node.else === undefined ? undefined : compileNode(compilation, requireNode(node.else))
  return (frame) => (booleanOf(frame, condition(frame)) === true ? then(frame) : otherwise?.(frame))
}

function compileFunction(compilation: Compilation, node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'name', 'value', 'position', 'arguments', 'procedure'])
  const procedure = requireNode(node.procedure)
  holdsOnly(procedure, ['type', 'value', 'position'])
  if (procedure.type !== 'variable') return leave()
  const args = nodes(node.arguments).map((argument) => compileNode(compilation, argument))
  return compileCall(procedure.value, args)
}

/** Parentheses around one expression; several would bind variables. */
function compileBlock(compilation: Compilation, node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'position', 'expressions'])
  const [only, ...more] = nodes(node.expressions)
  return only && more.length === 0 ? compileNode(compilation, only) : leave()
}

/** An item that is an array is spread into the result, unless it was written as one. */
function compileArray(compilation: Compilation, expressions: readonly AstNode[]): Evaluate {
  const items = expressions.map((node) => ({
    evaluate: compilePart(compilation, node),
    isArrayLiteral: node.type === 'unary' && node.value === '[',
  }))
  return (frame) => {
    const result: Json[] = []
    for (const { evaluate, isArrayLiteral } of items) {
      const value = evaluate(frame)
      if (value === undefined) continue
      if (isArrayLiteral || !isArray(value)) result.push(value)
      else appendAll(frame, result, value)
    }
    return result
  }
}

function appendAll(frame: Frame, result: Json[], values: readonly Json[]): void {
  spend(frame, values.length)
  for (const value of values) result.push(value)
}

/** Keys that JSONata refuses, or that would not become an ordinary property. */
const REFUSED_KEYS: ReadonlySet<string> = new Set(['_jsonata_lambda', '_jsonata_function', '__proto__'])

function compileObject(compilation: Compilation, pairs: unknown): Evaluate {
  if (!Array.isArray(pairs)) return leave()
  const entries = pairs.map((pair) => {
    const [keyNode, valueNode] = nodes(pair)
    const key = constantKey(keyNode)
    compilation.characters += key.length
    return { key, evaluate: compilePart(compilation, requireNode(valueNode)) }
  })
  if (new Set(entries.map(({ key }) => key)).size < entries.length) return leave()
  return (frame) => {
    const result: Record<string, Json> = {}
    for (const { key, evaluate } of entries) {
      const value = evaluate(frame)
      if (value !== undefined) result[key] = value
    }
    return result
  }
}

function constantKey(node: AstNode | undefined): string {
  if (node?.type !== 'string' || typeof node.value !== 'string' || REFUSED_KEYS.has(node.value)) return leave()
  holdsOnly(node, ['type', 'value', 'position'])
  return node.value
}

/**
 * A part of a constructed value. What is taken from the input is counted, because the result is written out later and each
 * mention would be written in full; what is constructed here is bounded by the expression itself.
 *
 * Elements of an array are different parts of the input: mentioning a field of each writes no more than the input once.
 */
function compilePart(compilation: Compilation, node: AstNode): Evaluate {
  const evaluate = compileNode(compilation, node)
  if (node.type === 'unary') return evaluate
  const isOfElement = !mentionsVariable(node)
  return (frame) => {
    const value = evaluate(frame)
    if (typeof value === 'object' && value !== null && !(value instanceof JsonNumber))
      spend(frame, isOfElement ? SHARED_CONTAINER_FUEL / frame.copies : SHARED_CONTAINER_FUEL)
    else if (typeof value === 'string' && frame.copies > 1) spend(frame, isOfElement ? value.length / 8 : value.length)
    return value
  }
}

/** Whether something in it may be the same for every element. */
function mentionsVariable(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return false
  if (isNode(part) && part.type === 'variable') return true
  return Object.values(part).some(mentionsVariable)
}
