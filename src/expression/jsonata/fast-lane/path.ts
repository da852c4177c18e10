import type { AstNode } from '../parse.ts'
import { type Evaluate, leave, type Value } from './frame.ts'
import { holdsOnly, isNode, nodes } from './nodes.ts'
import { isArray, isPlainObject } from './values.ts'

/**
 * Builds the closure of a path of plain names, each with at most one constant index: `a.b[0].c`, also behind `$` or
 * `$$`, which are both the roots here.
 *
 * An array may end a path or be indexed; where JSONata would map over it the evaluation leaves.
 */
export function compilePath(node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'steps'])
  const [first, ...rest] = nodes(node.steps)
  if (!first) return leave()
  const steps = (first.type === 'variable' && isRoot(first) ? rest : [first, ...rest]).map(compileStep)
  return (frame) => {
    let current: Value = frame.roots
    for (const { name, index } of steps) {
      current = property(current, name)
      if (index !== undefined) current = element(current, index)
      if (current === undefined) return undefined
    }
    return current
  }
}

/** Whether a variable node is `$` or `$$`. */
export function isRoot(node: AstNode): boolean {
  holdsOnly(node, ['type', 'value', 'position'])
  return node.value === '' || node.value === '$'
}

interface Step {
  readonly name: string
  readonly index: number | undefined
}

function compileStep(node: AstNode): Step {
  holdsOnly(node, ['type', 'value', 'position', 'stages'])
  if (node.type !== 'name' || typeof node.value !== 'string') return leave()
  return { name: node.value, index: node.stages === undefined ? undefined : constantIndex(node.stages) }
}

function constantIndex(stages: unknown): number {
  const [stage, ...more] = nodes(stages)
  if (!stage || more.length > 0 || stage.type !== 'filter' || !isNode(stage.expr)) return leave()
  holdsOnly(stage, ['type', 'expr', 'position'])
  holdsOnly(stage.expr, ['type', 'value', 'position'])
  const { type, value } = stage.expr
  return type === 'number' && typeof value === 'number' ? Math.floor(value) : leave()
}

function property(value: Value, name: string): Value {
  if (isArray(value)) return leave()
  return isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** A value that is no array counts as an array of itself. */
function element(value: Value, index: number): Value {
  if (!isArray(value)) return index === 0 || index === -1 ? value : undefined
  const item = value[index < 0 ? value.length + index : index]
  return isArray(item) ? leave() : item
}
