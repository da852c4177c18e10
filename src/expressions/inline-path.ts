import type { Json } from '../base/index.ts'
import {
  asNodes,
  assertKeys,
  bailOut,
  type CompiledNode,
  charge,
  type EvaluationFrame,
  isArray,
  isPlainObject,
  type Value,
} from './inline-frame.ts'
import { type AstNode, isNode } from './parse.ts'

/** A step of a path, applied to one value that is not an array. */
interface PathStep {
  apply(frame: EvaluationFrame, value: Json): Value
  /** Gas of one application. */
  readonly cost: number
}

/** A compiled object constructor and the gas of one run. */
export interface Construction {
  readonly evaluate: CompiledNode
  readonly cost: number
}

/**
 * Compiles a path of plain names, each with at most one constant index, and object constructors: `a.b[0].c`,
 * `data.items.{"id": id}`, also after a variable.
 *
 * A step after an array is applied to each of its elements and charged each time. Bails out where an element is an array.
 */
export function compilePath(node: AstNode, construct: (node: AstNode) => Construction): CompiledNode {
  assertKeys(node, ['type', 'steps'])
  const [first, ...rest] = asNodes(node.steps)
  if (!first) return bailOut()
  const isAbsolute = first.type === 'variable'
  const start = isAbsolute ? compileVariable(first) : contextOf
  const steps = (isAbsolute ? rest : [first, ...rest]).map((step) => compileStep(step, construct))
  return (frame) => {
    let current = start(frame)
    for (let at = 0; at < steps.length; at++) {
      if (isArray(current)) return mapSteps(frame, current, steps, at)
      const step = steps[at]
      if (step === undefined || current === undefined) return undefined
      current = step.apply(frame, current)
    }
    return current
  }
}

/**
 * The remaining steps over the elements of an array. Like JSONata: results that are arrays are flattened, one result is not
 * a list, and an array that is the only result of the last step stays as it is.
 */
function mapSteps(frame: EvaluationFrame, array: readonly Json[], steps: readonly PathStep[], from: number): Value {
  let sequence = array
  for (let at = from; at < steps.length; at++) {
    const step = steps[at]
    if (step === undefined) return bailOut()
    const results = resultsOf(frame, step, sequence)
    const [only] = results
    if (at === steps.length - 1 && results.length === 1 && isArray(only)) return only
    sequence = flattened(frame, results)
    if (sequence.length === 0) return undefined
  }
  return sequence.length === 1 ? sequence[0] : sequence
}

function resultsOf(frame: EvaluationFrame, step: PathStep, sequence: readonly Json[]): Json[] {
  charge(frame, sequence.length * step.cost)
  const outer = frame.copies
  frame.copies = outer * Math.max(1, sequence.length)
  const results: Json[] = []
  for (const item of sequence) {
    const result = isArray(item) ? bailOut() : step.apply(frame, item)
    if (result !== undefined) results.push(result)
  }
  frame.copies = outer
  return results
}

function flattened(frame: EvaluationFrame, results: readonly Json[]): readonly Json[] {
  if (!results.some(isArray)) return results
  const flat: Json[] = []
  for (const result of results) {
    if (!isArray(result)) {
      flat.push(result)
      continue
    }
    charge(frame, result.length)
    for (const item of result) flat.push(item)
  }
  return flat
}

/**
 * Compiles a variable: `$` is the context, `$$` the input, any other a bound value. Bails out for a name that is not bound:
 * it may be a function, which is a value in JSONata.
 */
export function compileVariable(node: AstNode): CompiledNode {
  assertKeys(node, ['type', 'value', 'position'])
  const { value: name } = node
  if (name === '') return contextOf
  if (name === '$') return inputOf
  if (typeof name !== 'string') return bailOut()
  return ({ bindings }) => (Object.hasOwn(bindings, name) ? bindings[name] : bailOut())
}

const inputOf: CompiledNode = ({ input }) => input
const contextOf: CompiledNode = ({ context }) => context

function compileStep(node: AstNode, construct: (node: AstNode) => Construction): PathStep {
  if (node.type === 'unary' && node.value === '{') return constructingStep(construct(node))
  assertKeys(node, ['type', 'value', 'position', 'stages'])
  if (node.type !== 'name' || typeof node.value !== 'string') return bailOut()
  const name = node.value
  if (node.stages === undefined) return { cost: 1, apply: (_frame, value) => property(value, name) }
  const index = constantIndex(node.stages)
  return { cost: 1, apply: (_frame, value) => element(property(value, name), index) }
}

/** Inside the constructor names are looked up in the element. */
function constructingStep({ evaluate, cost }: Construction): PathStep {
  return {
    cost,
    apply(frame, value) {
      const outer = frame.context
      frame.context = value
      const result = evaluate(frame)
      frame.context = outer
      return result
    },
  }
}

function constantIndex(stages: unknown): number {
  const [stage, ...more] = asNodes(stages)
  if (!stage || more.length > 0 || stage.type !== 'filter' || !isNode(stage.expr)) return bailOut()
  assertKeys(stage, ['type', 'expr', 'position'])
  assertKeys(stage.expr, ['type', 'value', 'position'])
  const { type, value } = stage.expr
  return type === 'number' && typeof value === 'number' ? Math.floor(value) : bailOut()
}

function property(value: Json, name: string): Value {
  return isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** A value that is not an array counts as an array of one element. */
function element(value: Value, index: number): Value {
  if (!isArray(value)) return index === 0 || index === -1 ? value : undefined
  const item = value[index < 0 ? value.length + index : index]
  return isArray(item) ? bailOut() : item
}
