import { isContextFree } from './input-keys.ts'
import { type AstNode, isNode, parseAst } from './parse.ts'

/** Names from the input downwards: `["properties", "email"]`; what is below is read too. */
export type InputPath = readonly string[]

/**
 * The parts of the input that an expression reads, as paths of names from the input downwards; `undefined` when it reads the
 * input as a whole (`$`, wildcards, functions that use the context for a missing argument) or does not parse.
 *
 * A path ends at the first step that is not a name or an index: `emails[type = "work"].address` reads `["emails"]`,
 * `$lookup($, "Work mail")` reads `["Work mail"]`. Names in lambdas and predicates that are looked up further down, and
 * variables, are not included.
 */
export function listInputPaths(text: string): readonly InputPath[] | undefined {
  const parsed = parseAst(text)
  if (!('tree' in parsed)) return undefined
  const paths: InputPath[] = []
  return collect(parsed.tree, true, { paths, atRoot: new Set(), below: new Set() }) ? distinct(paths) : undefined
}

function distinct(paths: readonly InputPath[]): readonly InputPath[] {
  return [...new Map(paths.map((path) => [JSON.stringify(path), path])).values()]
}

/** JSONata's trees share nodes (`a ?: b`): each is visited once per context. */
interface Search {
  readonly paths: InputPath[]
  readonly atRoot: Set<object>
  readonly below: Set<object>
}

/** @returns false when the part reads the input as a whole */
function collect(part: unknown, isAtRoot: boolean, search: Search): boolean {
  const seen = isAtRoot ? search.atRoot : search.below
  if (typeof part !== 'object' || part === null || seen.has(part)) return true
  seen.add(part)
  if (!isNode(part)) return Object.values(part).every((inner) => collect(inner, isAtRoot, search))
  if (part.focus !== undefined || part.index !== undefined || part.ancestor !== undefined) return false
  return collectNode(part, isAtRoot, search)
}

function collectNode(node: AstNode, isAtRoot: boolean, search: Search): boolean {
  switch (node.type) {
    case 'path':
      return collectPath(node, isAtRoot, search)
    case 'name':
      if (isAtRoot) search.paths.push([String(node.value)])
      return collectSelections(node, search)
    case 'variable':
      return node.value !== '$' && !(node.value === '' && isAtRoot) && collectSelections(node, search)
    case 'function':
      return collectCall(node, listOf(node.arguments).length, isAtRoot, search)
    case 'apply':
      return collectChain(node, isAtRoot, search)
    case 'lambda':
      return node.signature === undefined && collect(node.body, isAtRoot, search)
    case 'bind':
      return collect(node.rhs, isAtRoot, search)
    default:
      if (IN_PLACE.has(node.type)) return collectChildren(node, isAtRoot, search)
      return BELOW.has(node.type) && !isAtRoot && collectChildren(node, false, search)
  }
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
const BELOW: ReadonlySet<string> = new Set(['wildcard', 'descendant'])

/** Parts of a node that see what the node selects. */
const SELECTIONS = ['stages', 'predicate', 'group'] as const

function collectChildren(node: AstNode, isAtRoot: boolean, search: Search): boolean {
  const own = Object.entries(node).filter(([key]) => !SELECTIONS.some((selection) => selection === key))
  return own.every(([, inner]) => collect(inner, isAtRoot, search)) && collectSelections(node, search)
}

function collectSelections(node: AstNode, search: Search): boolean {
  return SELECTIONS.every((key) => collect(node[key], false, search))
}

function collectPath(node: AstNode, isAtRoot: boolean, search: Search): boolean {
  const steps = listOf(node.steps)
  const rest = isRoot(steps[0], isAtRoot) ? steps.slice(1) : steps
  const startsAtRoot = rest.length < steps.length || isAtRoot
  const names = startsAtRoot ? leadingNames(rest) : []
  if (names.length > 0) search.paths.push(names)
  if (startsAtRoot && rest.length === 0) return false
  const isFirstAtRoot = startsAtRoot && names.length === 0
  return (
    rest.every((step, at) =>
      at < names.length ? collectSelections(step, search) : collect(step, at === 0 && isFirstAtRoot, search),
    ) && collect(node.group, false, search)
  )
}

/** `$` in the context of the input, or `$$`, without predicates, which would read the whole. */
function isRoot(step: AstNode | undefined, isAtRoot: boolean): boolean {
  if (step?.type !== 'variable') return false
  if (SELECTIONS.some((key) => step[key] !== undefined)) return false
  return step.value === '$' || (step.value === '' && isAtRoot)
}

function leadingNames(steps: readonly AstNode[]): string[] {
  const names: string[] = []
  for (const step of steps) {
    if (step.type !== 'name' || step.focus !== undefined || step.index !== undefined) break
    names.push(String(step.value))
    if (!listOf(step.stages).every(isIndex)) break
  }
  return names
}

function isIndex({ type, expr }: AstNode): boolean {
  return type === 'filter' && isNode(expr) && expr.type === 'number'
}

/** `list ~> $function(more)`: the list is the first argument. */
function collectChain({ lhs, rhs }: AstNode, isAtRoot: boolean, search: Search): boolean {
  if (!isNode(rhs)) return false
  if (!collect(lhs, isAtRoot, search)) return false
  if (rhs.type === 'function') return collectCall(rhs, listOf(rhs.arguments).length + 1, isAtRoot, search)
  return rhs.type === 'variable' && collect(rhs, isAtRoot, search)
}

function collectCall(call: AstNode, count: number, isAtRoot: boolean, search: Search): boolean {
  const { procedure } = call
  if (!isNode(procedure) || procedure.type !== 'variable' || typeof procedure.value !== 'string') return false
  const key = procedure.value === 'lookup' ? lookedUpKey(listOf(call.arguments), isAtRoot) : undefined
  if (key !== undefined) {
    search.paths.push([key])
    return collectSelections(call, search)
  }
  if (isAtRoot && !isContextFree(procedure.value, count)) return false
  return collect(call.arguments, isAtRoot, search) && collectSelections(call, search)
}

/** `$lookup($, "key")` */
function lookedUpKey([object, key]: readonly AstNode[], isAtRoot: boolean): string | undefined {
  const only = object?.type === 'path' ? listOf(object.steps)[0] : object
  if (!isRoot(only, isAtRoot) || (object?.type === 'path' && listOf(object.steps).length > 1)) return undefined
  return key?.type === 'string' && typeof key.value === 'string' ? key.value : undefined
}

function listOf(part: unknown): readonly AstNode[] {
  return Array.isArray(part) ? part.filter(isNode) : []
}
