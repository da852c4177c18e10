import type { AstNode } from '../parse.ts'
import { type Evaluate, leave, type Value } from './frame.ts'
import { holdsOnly, isNode, nodes } from './nodes.ts'
import { isArray, isPlainObject } from './values.ts'

/**
 * Builds the closure of a path of plain names, each with at most one constant index: `a.b[0].c`, also behind a variable.
 *
 * An array may end a path or be indexed; where JSONata would map over it the evaluation leaves.
 */
export function compilePath(node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'steps'])
  const [first, ...rest] = nodes(node.steps)
  if (!first) return leave()
  const isAbsolute = first.type === 'variable'
  const start = isAbsolute ? compileVariable(first) : rootsOf
  const steps = (isAbsolute ? rest : [first, ...rest]).map(compileStep)
  return (frame) => {
    let current = start(frame)
    for (const { name, index } of steps) {
      current = property(current, name)
      if (index !== undefined) current = element(current, index)
      if (current === undefined) return undefined
    }
    return current
  }
}

/**
 * Builds the closure of a variable: `$` and `$$`, which are both the roots here, or one that is bound. What is not bound may
 * still be a function, which is a value too: JSONata knows.
 */
export function compileVariable(node: AstNode): Evaluate {
  holdsOnly(node, ['type', 'value', 'position'])
  const { value: name } = node
  if (name === '' || name === '$') return rootsOf
  if (typeof name !== 'string') return leave()
  return ({ bindings }) => (Object.hasOwn(bindings, name) ? bindings[name] : leave())
}

const rootsOf: Evaluate = ({ roots }) => roots

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
