import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compileFunction } from 'node:vm'

/** Why a text is not a valid expression. */
export interface ExpressionProblem {
  /** Description, worded to follow "is not a JSONata expression: ". */
  readonly problem: string
  /** JSONata's error code (`S0201`), or `TOO_LONG`, `TOO_DEEP`, `TOO_COMPLEX`. */
  readonly code: string
  /** Characters from the start of the text. */
  readonly position: number
}

/** A node of JSONata's syntax tree; further properties depend on the type. */
export interface AstNode {
  readonly type: string
  readonly [property: string]: unknown
}

/** True for a node of the syntax tree. */
export function isNode(part: unknown): part is AstNode {
  return typeof part === 'object' && part !== null && 'type' in part && typeof part.type === 'string'
}

/** Longest expression, in UTF-8 bytes. */
const EXPRESSION_BYTES_MAX = 16 * 1024

/** Deepest nesting of the syntax tree. */
const AST_DEPTH_MAX = 200

/** Most dots: the parser is quadratic in the length of a path. */
const DOTS_MAX = 1_500

/** Most characters that the parser may copy; see `loadParser`. */
const COPIED_CHARACTERS_MAX = 1_000_000

/**
 * Validates an expression without evaluating it: syntax, length and depth, not which root names and functions exist.
 *
 * Safe for untrusted text: takes at most some tens of milliseconds.
 */
export function validateExpression(text: string): { readonly ok: true } | ExpressionProblem {
  const parsed = parseAst(text)
  return 'tree' in parsed ? { ok: true } : parsed
}

/** The syntax tree of an expression within the limits. */
export function parseAst(text: string): { readonly tree: AstNode } | ExpressionProblem {
  if (Buffer.byteLength(text) > EXPRESSION_BYTES_MAX) {
    return { problem: `it is longer than ${EXPRESSION_BYTES_MAX} bytes`, code: 'TOO_LONG', position: 0 }
  }
  if (text.split('.', DOTS_MAX + 2).length > DOTS_MAX + 1) return TOO_COMPLEX
  try {
    const tree = parse(text)
    return depthOf(tree) > AST_DEPTH_MAX ? TOO_DEEP : { tree }
  } catch (error) {
    return problemOf(error)
  }
}

const TOO_COMPLEX: ExpressionProblem = { problem: 'it is too complex', code: 'TOO_COMPLEX', position: 0 }
const TOO_DEEP: ExpressionProblem = {
  problem: `it is nested deeper than ${AST_DEPTH_MAX} levels`,
  code: 'TOO_DEEP',
  position: 0,
}

let loaded: ((text: string) => AstNode) | undefined

function parse(text: string): AstNode {
  loaded ??= loadParser()
  return loaded(text)
}

/**
 * JSONata's parser with a limit on the only operation that is not linear in the text.
 *
 * For `a ?: b` and `a ?? b` it copies the tree of `a` through JSON, so that each level of nesting doubles the tree: thirty
 * levels, 200 characters, exhaust any memory. The package is therefore evaluated with its own `JSON`, which counts the
 * copied characters. That costs one more compilation of the module and touches no global.
 */
function loadParser(): (text: string) => AstNode {
  let copied = 0
  const countingJson = {
    parse: JSON.parse,
    stringify: (value: unknown) => {
      const copy = JSON.stringify(value)
      copied += copy.length
      if (copied > COPIED_CHARACTERS_MAX) throw new CopyBudgetExceeded()
      return copy
    },
  }
  const path = createRequire(import.meta.url).resolve('jsonata')
  const module: { exports: unknown } = { exports: {} }
  const define = compileFunction(readFileSync(path, 'utf8'), ['module', 'exports', 'JSON'], { filename: path })
  define(module, module.exports, countingJson)
  const jsonata = module.exports
  if (typeof jsonata !== 'function') throw new Error('the jsonata package does not export a function')
  return (text) => {
    copied = 0
    return jsonata(text).ast()
  }
}

class CopyBudgetExceeded extends Error {}

function depthOf(tree: AstNode): number {
  let deepest = 0
  visitNodes(tree, (_node, depth) => {
    deepest = Math.max(deepest, depth)
  })
  return deepest
}

/**
 * Visits the nodes of a tree, each before those inside it and in the order of the text. Each once: JSONata's trees share nodes
 * (`a ?: b` has `a` twice).
 *
 * @param visit is given the depth in nodes, 1 for the root
 */
export function visitNodes(tree: object, visit: (node: AstNode, depth: number) => void): void {
  const seen = new Set<unknown>()
  const open: { readonly part: unknown; readonly depth: number }[] = [{ part: tree, depth: 0 }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { part, depth } = next
    if (typeof part !== 'object' || part === null || seen.has(part)) continue
    seen.add(part)
    const inside = isNode(part) ? depth + 1 : depth
    if (isNode(part)) visit(part, inside)
    for (const inner of Object.values(part).reverse()) open.push({ part: inner, depth: inside })
  }
}

/** The parts of a property that are nodes. */
export function nodesIn(part: unknown): readonly AstNode[] {
  return Array.isArray(part) ? part.filter(isNode) : []
}

function problemOf(error: unknown): ExpressionProblem {
  if (error instanceof CopyBudgetExceeded) return TOO_COMPLEX
  // The parser recurses; a text that exhausts the stack is far beyond the maximum depth.
  if (error instanceof RangeError) return TOO_DEEP
  const { code, message, position } = readJsonataError(error)
  const where = position === undefined ? '' : ` at position ${position}`
  return { problem: `${message}${where}`, code: code ?? 'SYNTAX', position: position ?? 0 }
}

/** JSONata throws plain objects; a regular expression that does not compile throws a SyntaxError. */
function readJsonataError(error: unknown): { code?: string; message: string; position?: number } {
  if (typeof error !== 'object' || error === null) return { message: 'it does not parse' }
  return {
    ...('code' in error && typeof error.code === 'string' && { code: error.code }),
    ...('position' in error && typeof error.position === 'number' && { position: error.position }),
    message: 'message' in error && typeof error.message === 'string' ? error.message : 'it does not parse',
  }
}
