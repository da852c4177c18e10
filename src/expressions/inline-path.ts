import type { Json } from '../base/index.ts'
import { type Criterion, compileFilters, selectAll } from './inline-filter.ts'
import {
  asNodes,
  assertKeys,
  assertUnmarked,
  bailOut,
  type CompiledNode,
  charge,
  type EvaluationFrame,
  isArray,
  isPlainObject,
  toSequence,
  type Value,
} from './inline-frame.ts'
import { type CompileScope, compileBody, contextScope } from './inline-scope.ts'
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
 * Compiles a path of names with indexes and predicates, object constructors, blocks and calls:
 * `emails[type = "work"][0].address`, `data.items.{"id": id}`, `tags.$uppercase($)`, also after a variable.
 *
 * A step after an array is applied to each of its elements and charged each time. Bails out where an element is an array.
 */
export function compilePath(scope: CompileScope, node: AstNode): CompiledNode {
  assertKeys(node, ['type', 'steps', 'keepSingletonArray', 'keepArray'])
  const keepsArray = node.keepSingletonArray === true
  if (keepsArray) scope.compilation.tracksSequences = true
  const nodes = asNodes(node.steps)
  const [first, ...rest] = nodes
  if (!first) return bailOut()
  const isAbsolute = first.type === 'variable'
  const start = isAbsolute ? scope.compile(scope, first) : contextOf
  const from = isAbsolute ? 1 : 0
  const steps = (isAbsolute ? rest : nodes).map((step, at) => compileStep(scope, step, nodes.slice(0, from + at)))
  const names = keepsArray ? undefined : plainNames(node)
  if (names !== undefined) return compileNames(names, steps)
  return (frame) => {
    let current = start(frame)
    if (current === undefined && !isAbsolute && steps[0]?.appliesToMissing === true) bailOut()
    for (let at = 0; at < steps.length; at++) {
      if (isArray(current)) return mapSteps(frame, current, steps, at, keepsArray)
      const step = steps[at]
      if (step === undefined || current === undefined) return undefined
      current = step.apply(frame, current)
    }
    if (isArray(current)) return lastArray(frame, current, keepsArray)
    return keepsArray && current !== undefined ? toSequence(frame, [current], true) : current
  }
}

/** A path of names from the context. */
function compileNames(names: readonly string[], steps: readonly PathStep[]): CompiledNode {
  return (frame) => {
    let current = frame.context
    for (let at = 0; at < names.length; at++) {
      if (isArray(current)) return mapSteps(frame, current, steps, at, false)
      if (current === undefined || !isPlainObject(current)) return undefined
      current = current[names[at] ?? '']
    }
    return isArray(current) ? lastArray(frame, current, false) : current
  }
}

/**
 * The remaining steps over the elements of an array. Like JSONata: results that are arrays are flattened, one result is not
 * a list, and an array that is the only result of the last step stays as it is.
 */
function mapSteps(
  frame: EvaluationFrame,
  array: readonly Json[],
  steps: readonly PathStep[],
  from: number,
  keepsArray: boolean,
): Value {
  let sequence = array
  for (let at = from; at < steps.length; at++) {
    const step = steps[at]
    if (step === undefined) return bailOut()
    const results = resultsOf(frame, step, sequence)
    const [only] = results
    if (at === steps.length - 1 && results.length === 1 && isArray(only)) return lastArray(frame, only, keepsArray)
    sequence = flattened(frame, results)
    if (sequence.length === 0) return undefined
  }
  return toSequence(frame, sequence, keepsArray)
}

/** An array as the only result of the last step stays as it is, unless it is a sequence: `{"a": b[]}.a`. */
function lastArray(frame: EvaluationFrame, array: readonly Json[], keepsArray: boolean): Value {
  return array.length === 1 && frame.sequences?.has(array) === true ? toSequence(frame, array, keepsArray) : array
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
 * Compiles a variable: `$` is the context, `$$` the input, others are parameters, assigned or bound values. Bails out for a
 * name that is not bound: it may be a function, which is a value in JSONata.
 */
export function compileVariable({ variables }: CompileScope, node: AstNode): CompiledNode {
  assertKeys(node, ['type', 'value', 'position'])
  const { value: name } = node
  if (name === '') return checkedContextOf
  if (name === '$') return inputOf
  if (typeof name !== 'string') return bailOut()
  const local = variables.get(name)
  if (local) return ({ locals }) => locals[local.slot]
  return ({ bindings }) => (Object.hasOwn(bindings, name) ? bindings[name] : bailOut())
}

const inputOf: CompiledNode = ({ input }) => input
const contextOf: CompiledNode = ({ context }) => context
const checkedContextOf: CompiledNode = ({ context }) => {
  assertUnmarked(context)
  return context
}

function compileStep(scope: CompileScope, node: AstNode, before: readonly AstNode[]): PathStep {
  if (node.type !== 'name') return computedStep(scope, node, before)
  assertKeys(node, ['type', 'value', 'position', 'stages', 'keepArray'])
  if (typeof node.value !== 'string') return bailOut()
  const name = node.value
  const property = propertyReader(name)
  const plain = { appliesToMissing: false, cost: 1, apply: (_frame: EvaluationFrame, value: Json) => property(value) }
  if (node.stages === undefined) return plain
  const unfiltered = { ...node, stages: undefined }
  const filters = compileFilters(scope, node.stages, [...before, unfiltered])
  const appliesToMissing = filters.some(({ kind }) => kind !== 'index')
  return { ...plain, appliesToMissing, apply: (frame, value) => selectAll(frame, property(value), filters) }
}

/** An object constructor, a block or a call as a step: names inside are looked up in the element. */
function computedStep(scope: CompileScope, node: AstNode, before: readonly AstNode[]): PathStep {
  const isObject = node.type === 'unary' && node.value === '{'
  if (!(isObject || node.type === 'block' || node.type === 'function')) return bailOut()
  if (!isObject && keepsArrays(node)) return bailOut()
  const filters = node.stages === undefined ? NO_FILTERS : compileFilters(scope, node.stages, [...before, node])
  const { evaluate, cost } = compileBody(contextScope(scope, before), { ...node, stages: undefined })
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

const NO_FILTERS: readonly Criterion[] = []

/** `(a[])` as a step: an array that is kept is flattened there, one of the input is not. */
function keepsArrays(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return false
  if (isNode(part) && (part.keepArray !== undefined || part.keepSingletonArray !== undefined)) return true
  return Object.values(part).some(keepsArrays)
}

/** Only a name that every object inherits needs the look-up of own keys: it takes three times as long as reading. */
function propertyReader(name: string): (value: Json) => Value {
  if (name in Object.prototype)
    return (value) => (isPlainObject(value) && Object.hasOwn(value, name) ? value[name] : undefined)
  return (value) => (isPlainObject(value) ? value[name] : undefined)
}

/** The names of a path of nothing but names, `properties.email`, none of which objects inherit. */
export function plainNames({ type, steps, keepSingletonArray, keepArray }: AstNode): readonly string[] | undefined {
  if (type !== 'path' || keepSingletonArray !== undefined || keepArray !== undefined) return undefined
  const names = asNodes(steps).map((step) => {
    const isPlain = step.type === 'name' && step.stages === undefined && step.predicate === undefined
    return isPlain && typeof step.value === 'string' && !(step.value in Object.prototype) ? step.value : undefined
  })
  return names.every((name) => name !== undefined) ? names : undefined
}
