import { isNode } from './fast-lane/nodes.ts'
import { type AstNode, parseAst } from './parse.ts'

/** A name that an expression looks up in its roots, and the name that follows it: `headers.link` is `headers` and `link`. */
export interface RootName {
  readonly name: string
  readonly next: string | undefined
}

/** Children of these are evaluated where the node itself is. Lambdas keep the context in which they are written. */
const IN_PLACE: ReadonlySet<string> = new Set([
  'binary',
  'unary',
  'condition',
  'block',
  'bind',
  'apply',
  'function',
  'partial',
  'lambda',
])

/** Parts that are evaluated over what their node has selected. */
const OVER_SELECTION: ReadonlySet<string> = new Set(['stages', 'predicate', 'group', 'terms'])

/**
 * The names that an expression looks up in its roots, in order; none when it does not parse.
 *
 * Names further down a path, in predicates, groupings and orders belong to the values there and are not among them.
 */
export function listRootNames(text: string): RootName[] {
  const parsed = parseAst(text)
  const names: RootName[] = []
  if ('tree' in parsed) visit(parsed.tree, true, { names, atRoots: new Set(), below: new Set() })
  return names
}

/** JSONata's trees share nodes (`a ?: b`): each is visited once per context. */
interface Visit {
  readonly names: RootName[]
  readonly atRoots: Set<object>
  readonly below: Set<object>
}

function visit(part: unknown, isAtRoots: boolean, found: Visit): void {
  const seen = isAtRoots ? found.atRoots : found.below
  if (typeof part !== 'object' || part === null || seen.has(part)) return
  seen.add(part)
  if (!isNode(part)) {
    for (const inner of Object.values(part)) visit(inner, isAtRoots, found)
  } else if (part.type === 'path') visitPath(part, isAtRoots, found)
  else visitChildren(part, isAtRoots && IN_PLACE.has(part.type), found)
}

function visitPath({ steps, ...rest }: AstNode, isAtRoots: boolean, found: Visit): void {
  const [first, second, ...others] = Array.isArray(steps) ? steps.filter(isNode) : []
  if (first === undefined) return
  const leadsToRoots = first.type === 'variable' && (first.value === '$' || (first.value === '' && isAtRoots))
  if (first.type === 'name' && isAtRoots) addName(first, second, found)
  if (leadsToRoots && second !== undefined && hasNoPredicate(first)) addName(second, others[0], found)
  visit(first, isAtRoots, found)
  for (const step of [second, ...others]) visit(step, false, found)
  visitChildren(rest, false, found)
}

function visitChildren(node: object, isAtRoots: boolean, found: Visit): void {
  for (const [key, inner] of Object.entries(node)) visit(inner, isAtRoots && !OVER_SELECTION.has(key), found)
}

function addName({ type, value }: AstNode, next: AstNode | undefined, { names }: Visit): void {
  if (type !== 'name' || typeof value !== 'string') return
  names.push({ name: value, next: next?.type === 'name' && typeof next.value === 'string' ? next.value : undefined })
}

/** Without predicates, which would select among the roots. */
function hasNoPredicate(node: AstNode): boolean {
  return node.predicate === undefined && node.stages === undefined
}
