import type { JsonObject } from '../../foundation/json/index.ts'
import { isContextFree, isKnownFunction } from './context-functions.ts'
import { type AstNode, isNode, nodesIn, parseAst, visitNodes } from './parse.ts'

/** Names from the input downwards: `["properties", "email"]`; what is below is read too. */
export type InputPath = readonly string[]

/** What an expression reads of its input. */
interface Reads {
  /** In the order of the text. */
  readonly paths: readonly InputPath[]
  /** It reads the input as a whole, or may: `$`, wildcards, functions that use the context for a missing argument. */
  readonly isWhole: boolean
}

/**
 * The parts of the input that an expression reads, as paths of names from the input downwards; `undefined` when it reads the
 * input as a whole or does not parse.
 *
 * A path ends at the first step that is not a name or an index: `emails[type = "work"].address` reads `["emails"]`,
 * `$lookup($, "Work mail")` reads `["Work mail"]`. Names in predicates that are looked up further down, and variables, are not
 * included.
 */
export function listInputPaths(text: string): readonly InputPath[] | undefined {
  const parsed = parseAst(text)
  const reads = 'tree' in parsed ? readsOf(parsed.tree) : undefined
  return reads === undefined || reads.isWhole ? undefined : reads.paths
}

/** A name that an expression looks up in its input, and the name that follows it: `headers.link` is `headers` and `link`. */
export interface RootName {
  readonly name: string
  readonly next: string | undefined
}

/** The names that an expression looks up in its input, in order, also when it reads more; none when it does not parse. */
export function listRootNames(text: string): readonly RootName[] {
  const parsed = parseAst(text)
  const paths = 'tree' in parsed ? readsOf(parsed.tree).paths : []
  return paths.flatMap(([name, next]) => (name === undefined ? [] : { name, next }))
}

/** The keys of the input that an expression reads; `undefined` when it may read any. */
export function referencedInputKeys(tree: AstNode): ReadonlySet<string> | undefined {
  const { paths, isWhole } = readsOf(tree)
  return isWhole ? undefined : new Set(paths.flatMap(([name]) => name ?? []))
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

/** A variable that an expression mentions, and the name that follows it: `$steps.login` is `steps` and `login`. */
export interface VariablePath {
  readonly variable: string
  readonly step: string | undefined
}

/** The variables in an expression, including those that it binds itself and functions; none when it does not parse. */
export function listVariablePaths(text: string): readonly VariablePath[] {
  const parsed = parseAst(text)
  const found: VariablePath[] = []
  const taken = new Set<unknown>()
  const add = ({ value }: AstNode, next: AstNode | undefined) => {
    const step = next?.type === 'name' && typeof next.value === 'string' ? next.value : undefined
    if (typeof value === 'string') found.push({ variable: value, step })
  }
  if ('tree' in parsed)
    visitNodes(parsed.tree, (node) => {
      const [first, second] = nodesIn(node.steps)
      if (first?.type === 'variable') {
        taken.add(first)
        add(first, second)
      } else if (node.type === 'variable' && !taken.has(node)) add(node, undefined)
    })
  return found
}

/** Whether an expression may return its input as a whole, or a copy of it: it mentions `$` or `$$` without a step behind it. */
export function readsWholeInput(text: string): boolean {
  const parsed = parseAst(text)
  const followed = new Set<unknown>()
  let isWhole = false
  if ('tree' in parsed)
    visitNodes(parsed.tree, (node) => {
      const [first, second] = nodesIn(node.steps)
      if (first?.type === 'variable' && second !== undefined && isUnfiltered(first)) followed.add(first)
      if (node.type === 'variable' && (node.value === '' || node.value === '$') && !followed.has(node)) isWhole = true
    })
  return isWhole
}

/** Parts of a node that see what the node selects. */
const SELECTIONS = ['stages', 'predicate', 'group', 'terms'] as const

function isUnfiltered(node: AstNode): boolean {
  return SELECTIONS.every((key) => node[key] === undefined)
}

/** A search through a tree; each node is visited once per context. */
interface Search {
  readonly paths: Map<string, InputPath>
  isWhole: boolean
  readonly atRoot: Set<object>
  readonly below: Set<object>
}

function readsOf(tree: AstNode): Reads {
  const search: Search = { paths: new Map(), isWhole: false, atRoot: new Set(), below: new Set() }
  visit(search, tree, true)
  return { paths: [...search.paths.values()], isWhole: search.isWhole }
}

function addPath({ paths }: Search, path: InputPath): void {
  paths.set(JSON.stringify(path), path)
}

/** @param isAtRoot the context of the part is the input */
function visit(search: Search, part: unknown, isAtRoot: boolean): void {
  const seen = isAtRoot ? search.atRoot : search.below
  if (typeof part !== 'object' || part === null || seen.has(part)) return
  seen.add(part)
  if (!isNode(part)) {
    for (const inner of Object.values(part)) visit(search, inner, isAtRoot)
    return
  }
  if (part.focus !== undefined || part.index !== undefined || part.ancestor !== undefined) search.isWhole = true
  visitNode(search, part, isAtRoot)
}

/** Nodes whose children see the same context. */
const IN_PLACE: ReadonlySet<string> = new Set([
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
])

/** Nodes that read all of their context. */
const ALL_OF_CONTEXT: ReadonlySet<string> = new Set(['wildcard', 'descendant'])

function visitNode(search: Search, node: AstNode, isAtRoot: boolean): void {
  switch (node.type) {
    case 'path':
      visitPath(search, node, isAtRoot)
      break
    case 'name':
      if (isAtRoot) addPath(search, [String(node.value)])
      visitSelections(search, node)
      break
    case 'variable':
      search.isWhole ||= node.value === '$' || (node.value === '' && isAtRoot)
      visitSelections(search, node)
      break
    case 'function':
      visitCall(search, node, nodesIn(node.arguments).length, isAtRoot)
      break
    case 'apply':
      visitChain(search, node, isAtRoot)
      break
    case 'lambda':
      // A signature may take the context. Lambdas keep the context of their definition.
      search.isWhole ||= node.signature !== undefined || nodesIn(node.arguments).some(shadowsFunction)
      visit(search, node.body, isAtRoot)
      break
    case 'bind':
      search.isWhole ||= shadowsFunction(node.lhs)
      visit(search, node.rhs, isAtRoot)
      break
    default:
      search.isWhole ||= !IN_PLACE.has(node.type) && (isAtRoot || !ALL_OF_CONTEXT.has(node.type))
      for (const [key, inner] of Object.entries(node))
        visit(search, inner, isAtRoot && !SELECTIONS.some((selection) => selection === key))
  }
}

function shadowsFunction(node: unknown): boolean {
  return !isNode(node) || typeof node.value !== 'string' || isKnownFunction(node.value)
}

function visitSelections(search: Search, node: AstNode): void {
  for (const key of SELECTIONS) visit(search, node[key], false)
}

function visitPath(search: Search, node: AstNode, isAtRoot: boolean): void {
  const steps = nodesIn(node.steps)
  const rest = isRoot(steps[0], isAtRoot) ? steps.slice(1) : steps
  const startsAtRoot = rest.length < steps.length || isAtRoot
  const names = startsAtRoot ? leadingNames(rest) : []
  if (names.length > 0) addPath(search, names)
  search.isWhole ||= startsAtRoot && rest.length === 0
  for (const [at, step] of rest.entries()) {
    if (at < names.length) visitSelections(search, step)
    else visit(search, step, at === 0 && startsAtRoot)
  }
  visitSelections(search, node)
}

/** `$` in the context of the input, or `$$`, without predicates, which would read the whole. */
function isRoot(step: AstNode | undefined, isAtRoot: boolean): boolean {
  if (step?.type !== 'variable' || !isUnfiltered(step)) return false
  return step.value === '$' || (step.value === '' && isAtRoot)
}

function leadingNames(steps: readonly AstNode[]): string[] {
  const names: string[] = []
  for (const step of steps) {
    if (step.type !== 'name' || step.focus !== undefined || step.index !== undefined) break
    names.push(String(step.value))
    if (!nodesIn(step.stages).every(isIndex)) break
  }
  return names
}

function isIndex({ type, expr }: AstNode): boolean {
  return type === 'filter' && isNode(expr) && expr.type === 'number'
}

/** `list ~> $function(more)`: the list is the first argument. */
function visitChain(search: Search, { lhs, rhs }: AstNode, isAtRoot: boolean): void {
  visit(search, lhs, isAtRoot)
  if (isNode(rhs) && rhs.type === 'function') {
    visitCall(search, rhs, nodesIn(rhs.arguments).length + 1, isAtRoot)
    return
  }
  search.isWhole ||= !isNode(rhs) || rhs.type !== 'variable'
  visit(search, rhs, isAtRoot)
}

/** @param count of arguments, with that of a chain */
function visitCall(search: Search, call: AstNode, count: number, isAtRoot: boolean): void {
  const name = isNode(call.procedure) && call.procedure.type === 'variable' ? call.procedure.value : undefined
  const key = name === 'lookup' ? lookedUpKey(nodesIn(call.arguments), isAtRoot) : undefined
  visitSelections(search, call)
  if (key !== undefined) {
    addPath(search, [key])
    return
  }
  search.isWhole ||= typeof name !== 'string' || (isAtRoot && !isContextFree(name, count))
  if (name === undefined) visit(search, call.procedure, isAtRoot)
  visit(search, call.arguments, isAtRoot)
}

/** `$lookup($, "key")` */
function lookedUpKey([object, key]: readonly AstNode[], isAtRoot: boolean): string | undefined {
  const [only, ...others] = object?.type === 'path' ? nodesIn(object.steps) : [object]
  if (!isRoot(only, isAtRoot) || others.length > 0) return undefined
  return key?.type === 'string' && typeof key.value === 'string' ? key.value : undefined
}
