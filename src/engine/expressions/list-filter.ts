import { type AstNode, isNode, nodesIn, parseAst, visitNodes } from './parse.ts'

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
  if (!('tree' in parsed) || !hasFilter(parsed.tree)) return { kind: 'unfiltered' }
  return { kind: 'filtered', source: sourceOf(parsed.tree) }
}

function hasFilter(tree: AstNode): boolean {
  let isFiltered = false
  visitNodes(tree, (node) => {
    isFiltered ||= isFilter(node) || functionName(node) === 'filter'
  })
  return isFiltered
}

/** The list below the first filter. */
function sourceOf(node: AstNode): string | undefined {
  switch (node.type) {
    case 'path':
      return sourceOfPath(nodesIn(node.steps))
    case 'function':
      return sourceOfCall(node, nodesIn(node.arguments)[0])
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
  if (hasFilter(list)) return name === 'filter' || LENGTH_PRESERVING.has(name) ? sourceOf(list) : undefined
  return name === 'filter' && list.type === 'path' ? writeSteps(nodesIn(list.steps)) : undefined
}

function sourceOfBlock(block: AstNode): string | undefined {
  const [only, ...more] = nodesIn(block.expressions)
  if (only === undefined || more.length > 0) return undefined
  if (hasFilter(only)) return sourceOf(only)
  return only.type === 'path' ? writeSteps(nodesIn(only.steps)) : undefined
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

function functionName({ type, procedure }: AstNode): string | undefined {
  if (type !== 'function' || !isNode(procedure) || procedure.type !== 'variable') return undefined
  return typeof procedure.value === 'string' ? procedure.value : undefined
}
