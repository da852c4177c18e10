import { type Json, toDouble } from '../../foundation/json/index.ts'
import {
  asNodes,
  asNumber,
  assertKeys,
  assertUnmarked,
  bailOut,
  booleanOf,
  type CompiledBody,
  type CompiledNode,
  type CompileScope,
  charge,
  compileBody,
  type EvaluationFrame,
  isArray,
  isPlainObject,
  toSequence,
  type Value,
} from './inline-frame.ts'
import { type AstNode, isNode } from './parse.ts'

/** A step of a path, applied to one value that is not an array. */
interface PathStep {
  apply(frame: EvaluationFrame, value: Json): Value
  /** Gas of one application. */
  readonly cost: number
  /** As the first step it is applied, and may fail, also when there is no context. */
  readonly appliesToMissing: boolean
}

/**
 * Compiles a path of names with indexes and predicates, object constructors, parentheses and calls:
 * `emails[type = "work"][0].address`, `data.items.{"id": id}`, `tags.$uppercase($)`, also after a variable.
 *
 * A step after an array is applied to each of its elements and charged each time. Bails out where an element is an array.
 */
export function compilePath(scope: CompileScope, node: AstNode): CompiledNode {
  assertKeys(node, ['type', 'steps'])
  const nodes = asNodes(node.steps)
  const [first, ...rest] = nodes
  if (!first) return bailOut()
  const isAbsolute = first.type === 'variable'
  const start = isAbsolute ? scope.compile(scope, first) : contextOf
  const steps = (isAbsolute ? rest : nodes).map((step) => compileStep(scope, step))
  const names = plainNames(node)
  if (names !== undefined) return compileNames(names, steps)
  return (frame) => {
    let current = start(frame)
    if (current === undefined && !isAbsolute && steps[0]?.appliesToMissing === true) bailOut()
    for (let at = 0; at < steps.length; at++) {
      if (isArray(current)) return mapSteps(frame, current, steps, at)
      const step = steps[at]
      if (step === undefined || current === undefined) return undefined
      current = step.apply(frame, current)
    }
    return current
  }
}

/** A path of names from the context. */
function compileNames(names: readonly string[], steps: readonly PathStep[]): CompiledNode {
  return (frame) => {
    let current = frame.context
    for (let at = 0; at < names.length; at++) {
      if (isArray(current)) return mapSteps(frame, current, steps, at)
      if (current === undefined || !isPlainObject(current)) return undefined
      current = current[names[at] ?? '']
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
  for (const [at, step] of steps.slice(from).entries()) {
    charge(frame, sequence.length * step.cost)
    const results: Json[] = []
    for (const item of sequence) {
      const result = isArray(item) ? bailOut() : step.apply(frame, item)
      if (result !== undefined) results.push(result)
    }
    const [only] = results
    if (from + at === steps.length - 1 && results.length === 1 && isArray(only)) return only
    sequence = flattened(frame, results)
    if (sequence.length === 0) return undefined
  }
  return toSequence(sequence)
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
 * Compiles a variable: `$` is the context, `$$` the input, others are parameters or bound values. Bails out for a name that is
 * not bound: it may be a function, which is a value in JSONata.
 */
export function compileVariable({ variables }: CompileScope, node: AstNode): CompiledNode {
  assertKeys(node, ['type', 'value', 'position'])
  const { value: name } = node
  if (name === '') return checkedContextOf
  if (name === '$') return ({ input }) => input
  if (typeof name !== 'string') return bailOut()
  const slot = variables.get(name)
  if (slot !== undefined) return ({ locals }) => locals[slot]
  return ({ bindings }) => (Object.hasOwn(bindings, name) ? bindings[name] : bailOut())
}

const contextOf: CompiledNode = ({ context }) => context
const checkedContextOf: CompiledNode = ({ context }) => {
  assertUnmarked(context)
  return context
}

function compileStep(scope: CompileScope, node: AstNode): PathStep {
  if (node.type !== 'name') return computedStep(scope, node)
  assertKeys(node, ['type', 'value', 'position', 'stages'])
  if (typeof node.value !== 'string') return bailOut()
  const property = propertyReader(node.value)
  const plain = { appliesToMissing: false, cost: 1, apply: (_frame: EvaluationFrame, value: Json) => property(value) }
  if (node.stages === undefined) return plain
  const filters = compileFilters(scope, node.stages)
  const appliesToMissing = filters.some(({ kind }) => kind !== 'index')
  return { ...plain, appliesToMissing, apply: (frame, value) => selectAll(frame, property(value), filters) }
}

/** An object constructor, parentheses or a call as a step: names inside are looked up in the element. */
function computedStep(scope: CompileScope, node: AstNode): PathStep {
  const isObject = node.type === 'unary' && node.value === '{'
  if (!(isObject || node.type === 'block' || node.type === 'function')) return bailOut()
  const filters = node.stages === undefined ? [] : compileFilters(scope, node.stages)
  const { evaluate, cost } = compileBody(scope, { ...node, stages: undefined })
  return {
    cost,
    appliesToMissing: true,
    apply(frame, value) {
      assertUnmarked(value)
      const outer = frame.context
      frame.context = value
      const result = evaluate(frame)
      frame.context = outer
      return filters.length === 0 ? result : selectAll(frame, result, filters)
    },
  }
}

/** Only a name that every object inherits needs the look-up of own keys: it takes three times as long as reading. */
function propertyReader(name: string): (value: Json) => Value {
  if (name in Object.prototype)
    return (value) => (isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined)
  return (value) => (isPlainObject(value) ? value[name] : undefined)
}

/** The names of a path of nothing but names, `properties.email`, none of which objects inherit. */
export function plainNames({ type, steps, keepSingletonArray }: AstNode): readonly string[] | undefined {
  if (type !== 'path' || keepSingletonArray !== undefined) return undefined
  const names = asNodes(steps).map((step) => {
    const isPlain = step.type === 'name' && step.stages === undefined && step.predicate === undefined
    return isPlain && typeof step.value === 'string' && !(step.value in Object.prototype) ? step.value : undefined
  })
  return names.every((name) => name !== undefined) ? names : undefined
}

/** An index (`[0]`, `[-1]`) or a predicate (`[type = "work"]`). */
export type Criterion =
  | { readonly kind: 'index'; readonly index: number }
  | (CompiledBody & { readonly kind: 'predicate' })

/** Compiles the indexes and predicates after a node. */
export function compileFilters(scope: CompileScope, stages: unknown): readonly Criterion[] {
  return asNodes(stages).map((stage) => {
    if (stage.type !== 'filter' || !isNode(stage.expr)) return bailOut()
    assertKeys(stage, ['type', 'expr', 'position'])
    const { type, value } = stage.expr
    if (type === 'number' && typeof value === 'number') return { kind: 'index', index: Math.floor(value) }
    return { kind: 'predicate', ...compileBody(scope, stage.expr) }
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
  const outer = frame.context
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
  frame.context = outer
  return toSequence(selected)
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
