import type { JsonObject } from '../base/index.ts'
import { type AstNode, isNode } from './parse.ts'
import { MAPPING_FUNCTIONS } from './sandbox/mapping-functions.ts'

/** Functions that never use the context as an argument. */
const WITHOUT_CONTEXT: ReadonlySet<string> = new Set([
  'count',
  'sum',
  'max',
  'min',
  'average',
  'append',
  'exists',
  'join',
  'map',
  'filter',
  'single',
  'zip',
  'reduce',
  'sort',
  'reverse',
  'distinct',
  'merge',
  'now',
  'millis',
  'uuid',
  'random',
  'type',
  'error',
  'assert',
  ...MAPPING_FUNCTIONS.keys(),
])

/** Functions that use the context only when they are called with fewer arguments than this. */
const CONTEXT_BELOW: ReadonlyMap<string, number> = new Map(
  Object.entries({
    string: 1,
    number: 1,
    boolean: 1,
    not: 1,
    length: 1,
    lowercase: 1,
    uppercase: 1,
    trim: 1,
    keys: 1,
    abs: 1,
    floor: 1,
    ceil: 1,
    round: 1,
    base64encode: 1,
    base64decode: 1,
    hash: 1,
    base64url: 1,
    parseDate: 1,
    toMillis: 1,
    fromMillis: 1,
    contains: 2,
    split: 2,
    match: 2,
    substringBefore: 2,
    substringAfter: 2,
    lookup: 2,
    each: 2,
    sift: 2,
    hmac: 2,
    substring: 2,
    pad: 2,
    replace: 3,
  }),
)

/**
 * The keys of the input that an expression may read; `undefined` when it may read any.
 *
 * Every name in the expression counts, also those that are looked up further down. Parts that see the input as a whole (`$`,
 * `$$`, wildcards, parents, `a@$x`, transforms, functions that use the context for a missing argument) may read any key, and
 * so may nodes of unknown types.
 */
export function referencedInputKeys(tree: AstNode): ReadonlySet<string> | undefined {
  const names = new Set<string>()
  return collectKeys(tree, names, new Set()) ? names : undefined
}

/** Keys by which JSONata takes the input for one of its own objects, also when the expression does not read them. */
const RESERVED_KEYS = ['_jsonata_lambda', '_jsonata_function', 'tupleStream', 'outerWrapper'] as const

/**
 * The part of the input that an expression reads. Keys repeat each other (`body`, `data`, `response.body`), and what is not
 * read need not be sent to a sandbox.
 */
export function pickInputKeys(input: JsonObject, reads: ReadonlySet<string> | undefined): JsonObject {
  if (reads === undefined || RESERVED_KEYS.some((mark) => Object.hasOwn(input, mark))) return input
  return Object.fromEntries(Object.entries(input).filter(([key]) => reads.has(key)))
}

const TRANSPARENT: ReadonlySet<string> = new Set([
  'binary',
  'unary',
  'condition',
  'block',
  'string',
  'number',
  'value',
  'regex',
  'filter',
  'sort',
  'apply',
  'index',
])

/** @returns false when the part may read anything */
function collectKeys(part: unknown, names: Set<string>, seen: Set<unknown>): boolean {
  if (typeof part !== 'object' || part === null || seen.has(part)) return true
  seen.add(part)
  if (!isNode(part)) return Object.values(part).every((inner) => collectKeys(inner, names, seen))
  return readsNamedKeysOnly(part, names, seen) && Object.values(part).every((inner) => collectKeys(inner, names, seen))
}

/** Whether the node by itself reads no more than the names it adds. */
function readsNamedKeysOnly(node: AstNode, names: Set<string>, seen: Set<unknown>): boolean {
  // A focus keeps the context: after `a@$x` it is still the input.
  if (node.focus !== undefined) return false
  switch (node.type) {
    case 'name':
      names.add(String(node.value))
      return true
    case 'variable':
      return node.value !== '' && node.value !== '$'
    case 'function':
      return isContextFreeCall(node, seen)
    case 'path':
      skipRoot(node, seen)
      return true
    case 'bind':
      return !isFunctionName(node.lhs)
    case 'lambda':
      return !(Array.isArray(node.arguments) && node.arguments.some(isFunctionName))
    default:
      return TRANSPARENT.has(node.type)
  }
}

function isContextFreeCall({ procedure, arguments: args }: AstNode, seen: Set<unknown>): boolean {
  if (!isNode(procedure) || procedure.type !== 'variable' || typeof procedure.value !== 'string') return false
  seen.add(procedure)
  return isContextFree(procedure.value, Array.isArray(args) ? args.length : 0)
}

/** Whether a call of a function with so many arguments does not use the context for a missing one; false when unknown. */
export function isContextFree(name: string, argumentCount: number): boolean {
  return WITHOUT_CONTEXT.has(name) || argumentCount >= (CONTEXT_BELOW.get(name) ?? Number.POSITIVE_INFINITY)
}

/** Binding this name would shadow a function of the tables above. */
function isFunctionName(node: unknown): boolean {
  if (!isNode(node) || node.type !== 'variable' || typeof node.value !== 'string') return true
  return WITHOUT_CONTEXT.has(node.value) || CONTEXT_BELOW.has(node.value)
}

/** `$.a` and `$$.a` read a name and not the whole. */
function skipRoot({ steps }: AstNode, seen: Set<unknown>): void {
  const [first, second] = Array.isArray(steps) ? steps : []
  if (isNode(first) && first.type === 'variable' && isPlainStep(first) && isNode(second) && second.type === 'name')
    seen.add(first)
}

/** Without predicates or groupings, which would see the whole. */
function isPlainStep(node: AstNode): boolean {
  return Object.keys(node).every((key) => key === 'type' || key === 'value' || key === 'position')
}
