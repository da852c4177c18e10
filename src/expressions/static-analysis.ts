import { type AstNode, isNode, parseAst } from './parse.ts'

/** A name that an expression looks up in its input, and the name that follows it: `headers.link` is `headers` and `link`. */
export interface RootName {
  readonly name: string
  readonly next: string | undefined
}

/** Nodes whose children are evaluated in the same context. Lambdas keep the context of their definition. */
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

/** Parts that are evaluated in the context of what their node selects. */
const OVER_SELECTION: ReadonlySet<string> = new Set(['stages', 'predicate', 'group', 'terms'])

/**
 * The names that an expression looks up in its input, in order; none when it does not parse.
 *
 * Names further down a path, in predicates, groupings and orders are looked up elsewhere and are not included.
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

/** Without predicates, which would select from the input. */
function hasNoPredicate(node: AstNode): boolean {
  return node.predicate === undefined && node.stages === undefined
}

/** A variable that an expression mentions, and the name that follows it: `$steps.login` is `steps` and `login`. */
export interface VariablePath {
  readonly variable: string
  readonly step: string | undefined
}

/**
 * The variables in an expression, including those that it binds itself and functions; none when it does not parse.
 */
export function listVariablePaths(text: string): VariablePath[] {
  const parsed = parseAst(text)
  return 'tree' in parsed ? collectVariablePaths(parsed.tree, new Set()) : []
}

/** JSONata's trees share nodes: `a ?: b` mentions `a` twice. */
function collectVariablePaths(part: unknown, seen: Set<unknown>): VariablePath[] {
  if (typeof part !== 'object' || part === null || seen.has(part)) return []
  seen.add(part)
  return [...ownPath(part, seen), ...Object.values(part).flatMap((inner) => collectVariablePaths(inner, seen))]
}

function ownPath(part: object, seen: Set<unknown>): VariablePath[] {
  if (!isNode(part)) return []
  if (part.type === 'variable') return variableAt(part, undefined)
  const [first, second] = part.type === 'path' && Array.isArray(part.steps) ? part.steps : []
  if (!isNode(first) || first.type !== 'variable') return []
  seen.add(first)
  return variableAt(first, isNode(second) && second.type === 'name' ? second.value : undefined)
}

function variableAt({ value }: AstNode, step: unknown): VariablePath[] {
  return typeof value === 'string' ? [{ variable: value, step: typeof step === 'string' ? step : undefined }] : []
}

/** Whether an expression filters a list, and the expression of that list where it is known. */
export type FilteredList =
  | { readonly kind: 'unfiltered' }
  | { readonly kind: 'filtered'; readonly source: string | undefined }

/** Functions whose result has as many entries as their first argument. */
const LENGTH_PRESERVING: ReadonlySet<string> = new Set(['map', 'sort', 'reverse', 'shuffle'])

/**
 * The list that an expression filters: `$.results` of `$.results[active].{"id": uid}` and of `$filter($.results, …)`.
 *
 * An index (`body[0]`) selects and does not filter. The source of a filtered computed list is not known.
 */
export function findFilteredList(text: string): FilteredList {
  const parsed = parseAst(text)
  if (!('tree' in parsed) || !hasFilter(parsed.tree, new Set())) return { kind: 'unfiltered' }
  return { kind: 'filtered', source: sourceOf(parsed.tree) }
}

function hasFilter(part: unknown, seen: Set<unknown>): boolean {
  if (typeof part !== 'object' || part === null || seen.has(part)) return false
  seen.add(part)
  if (isNode(part) && (isFilter(part) || functionName(part) === 'filter')) return true
  return Object.values(part).some((inner) => hasFilter(inner, seen))
}

/** The list below the first filter. */
function sourceOf(node: AstNode): string | undefined {
  switch (node.type) {
    case 'path':
      return sourceOfPath(stepsOf(node))
    case 'function':
      return sourceOfCall(node, firstOf(node.arguments))
    case 'apply':
      return isNode(node.rhs) && isNode(node.lhs) ? sourceOfCall(node.rhs, node.lhs) : undefined
    case 'block':
      return sourceOfBlock(node)
    default:
      return undefined
  }
}

function sourceOfPath(steps: readonly AstNode[]): string | undefined {
  const filtered = steps.findIndex((step) => filtersOf(step).length > 0)
  const [first] = steps
  if (filtered === -1) return first === undefined ? undefined : sourceOf(first)
  if (filtered === 0 && first !== undefined && first.type === 'block') return sourceOfBlock(first)
  return writeSteps(steps.slice(0, filtered + 1))
}

function sourceOfCall(call: AstNode, list: AstNode | undefined): string | undefined {
  const name = functionName(call)
  if (list === undefined || name === undefined) return undefined
  if (hasFilter(list, new Set())) return name === 'filter' || LENGTH_PRESERVING.has(name) ? sourceOf(list) : undefined
  return name === 'filter' && list.type === 'path' ? writeSteps(stepsOf(list)) : undefined
}

function sourceOfBlock(block: AstNode): string | undefined {
  const [only, ...more] = Array.isArray(block.expressions) ? block.expressions.filter(isNode) : []
  if (only === undefined || more.length > 0) return undefined
  if (hasFilter(only, new Set())) return sourceOf(only)
  return only.type === 'path' ? writeSteps(stepsOf(only)) : undefined
}

/** Steps as an expression: names, wildcards and indexes, without orders and filters; `undefined` for any other step. */
function writeSteps(steps: readonly AstNode[]): string | undefined {
  const written = steps.filter(({ type }) => type !== 'sort').map(writeStep)
  return written.includes(undefined) ? undefined : written.join('.')
}

function writeStep(step: AstNode): string | undefined {
  const indexes = filtersOf(step, true).map((index) => `[${index}]`)
  switch (step.type) {
    case 'name':
      return typeof step.value === 'string' && !step.value.includes('`')
        ? `\`${step.value}\`${indexes.join('')}`
        : undefined
    case 'wildcard':
      return `*${indexes.join('')}`
    case 'variable':
      return step.value === '' || step.value === '$' ? `$${step.value}` : undefined
    default:
      return undefined
  }
}

/** The predicates of a step, or its indexes before the first predicate. */
function filtersOf(step: AstNode, wantsIndexes = false): readonly unknown[] {
  const stages = [step.stages, step.predicate].flatMap((list) => (Array.isArray(list) ? list : []))
  if (!wantsIndexes) return stages.filter(isFilter)
  const first = stages.findIndex(isFilter)
  return (first === -1 ? stages : stages.slice(0, first)).map(({ expr }) => expr.value)
}

function isFilter(part: unknown): boolean {
  return isNode(part) && part.type === 'filter' && !(isNode(part.expr) && part.expr.type === 'number')
}

function stepsOf({ steps }: AstNode): readonly AstNode[] {
  return Array.isArray(steps) ? steps.filter(isNode) : []
}

function firstOf(list: unknown): AstNode | undefined {
  const first: unknown = Array.isArray(list) ? list[0] : undefined
  return isNode(first) ? first : undefined
}

function functionName({ type, procedure }: AstNode): string | undefined {
  if (type !== 'function' || !isNode(procedure) || procedure.type !== 'variable') return undefined
  return typeof procedure.value === 'string' ? procedure.value : undefined
}
