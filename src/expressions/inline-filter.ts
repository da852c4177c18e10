import { type Json, toDouble } from '../base/index.ts'
import {
  asNodes,
  asNumber,
  assertKeys,
  assertUnmarked,
  bailOut,
  booleanOf,
  charge,
  type EvaluationFrame,
  isArray,
  toSequence,
  type Value,
} from './inline-frame.ts'
import { type CompiledBody, type CompileScope, compileTest, contextScope } from './inline-scope.ts'
import { type AstNode, isNode } from './parse.ts'

/** An index (`[0]`, `[-1]`) or a predicate (`[type = "work"]`). */
export type Criterion =
  | { readonly kind: 'index'; readonly index: number }
  | (CompiledBody & { readonly kind: 'predicate' })

/** Compiles the indexes and predicates after a node. @param source the nodes that are filtered */
export function compileFilters(scope: CompileScope, stages: unknown, source: readonly AstNode[]): readonly Criterion[] {
  return asNodes(stages).map((stage) => {
    if (stage.type !== 'filter' || !isNode(stage.expr)) return bailOut()
    assertKeys(stage, ['type', 'expr', 'position'])
    const { type, value } = stage.expr
    if (type === 'number' && typeof value === 'number') return { kind: 'index', index: Math.floor(value) }
    return { kind: 'predicate', ...compileTest(contextScope(scope, source), stage.expr) }
  })
}

/** The elements of a value that pass each filter in turn, as a sequence; a value that is not an array counts as one element. */
export function selectAll(frame: EvaluationFrame, value: Value, filters: readonly Criterion[]): Value {
  let selected = value
  for (const filter of filters) {
    assertUnmarked(selected)
    selected = filter.kind === 'index' ? element(selected, filter.index) : select(frame, selected, filter)
  }
  return selected
}

function element(value: Value, index: number): Value {
  if (!isArray(value)) return index === 0 || index === -1 ? value : undefined
  const item = value[index < 0 ? value.length + index : index]
  return isArray(item) ? bailOut() : item
}

function select(frame: EvaluationFrame, value: Value, predicate: CompiledBody): Value {
  const items = isArray(value) ? value : [value]
  charge(frame, items.length * predicate.cost)
  const outer = { context: frame.context, copies: frame.copies }
  frame.copies = outer.copies * Math.max(1, items.length)
  const selected: Json[] = []
  for (let at = 0; at < items.length; at++) {
    const item = items[at]
    if (isArray(item)) return bailOut()
    frame.context = item
    if (!holds(frame, predicate.evaluate(frame), at, items.length)) continue
    // JSONata has a sequence of one missing value here.
    if (item === undefined) return bailOut()
    selected.push(item)
  }
  frame.context = outer.context
  frame.copies = outer.copies
  return toSequence(frame, selected)
}

/** A number selects the element at that index, anything else is a condition. */
function holds(frame: EvaluationFrame, given: Value, at: number, length: number): boolean {
  const value = toDouble(given)
  if (typeof value === 'number') {
    const index = Math.floor(asNumber(value))
    return (index < 0 ? length + index : index) === at
  }
  if (isArray(value) && value.some((item) => typeof toDouble(item) === 'number')) return bailOut()
  return booleanOf(frame, value) === true
}
