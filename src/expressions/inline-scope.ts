import { bailOut, type CompiledNode, chargeReference } from './inline-frame.ts'
import { type AstNode, isNode } from './parse.ts'

/** Counters of one compilation. */
interface Compilation {
  nodes: number
  /** Total length of keys and literals, which each constructed element repeats. */
  characters: number
  /** Slots of local variables. */
  slots: number
  /** A function distinguishes sequences from arrays. */
  tracksSequences: boolean
}

/** A loop over the elements of an array; the expression as a whole counts as one over the input. */
interface Loop {
  /** No element comes twice, also when loops around it run several times. */
  readonly isFresh: boolean
}

/** A parameter of a lambda, or an assigned variable. */
interface LocalVariable {
  readonly slot: number
  /** The loop whose element it is, or is part of. */
  readonly loop: Loop
}

/** What names mean at a place of the expression, and compiles what is there. */
export interface CompileScope {
  readonly compilation: Compilation
  readonly compile: (scope: CompileScope, node: AstNode) => CompiledNode
  readonly variables: ReadonlyMap<string, LocalVariable>
  /** The innermost loop. */
  readonly loop: Loop
  /** The loop whose element is the context. */
  readonly contextLoop: Loop
}

const OUTERMOST: Loop = { isFresh: true }

/** The scope of a whole expression. */
export function outermostScope(compile: CompileScope['compile']): CompileScope {
  const compilation = { nodes: 0, characters: 0, slots: 0, tracksSequences: false }
  return { compilation, compile, variables: new Map(), loop: OUTERMOST, contextLoop: OUTERMOST }
}

/** The scope inside a loop over the value of some nodes, whose elements become the context. */
export function contextScope(scope: CompileScope, source: readonly AstNode[]): CompileScope {
  const loop = { isFresh: isOfElement(scope, source) }
  return { ...scope, loop, contextLoop: loop }
}

/** The scope inside a lambda that is called for each element of the value of a node. */
export function lambdaScope(
  scope: CompileScope,
  source: AstNode,
  names: readonly string[],
): { readonly scope: CompileScope; readonly slots: readonly number[] } {
  const loop = { isFresh: isOfElement(scope, source) }
  let inner: CompileScope = { ...scope, loop }
  const slots: number[] = []
  for (const name of names) {
    const declared = declare(inner, name, loop)
    inner = declared.scope
    slots.push(declared.slot)
  }
  return { scope: inner, slots }
}

/** The scope after an assignment. */
export function assignmentScope(
  scope: CompileScope,
  name: string,
  value: AstNode,
): { scope: CompileScope; slot: number } {
  return declare(scope, name, isOfElement(scope, value) ? scope.loop : OUTERMOST)
}

/** Most variables of one expression: each declaration copies those before it. */
const VARIABLES_MAX = 64

function declare(scope: CompileScope, name: string, loop: Loop): { scope: CompileScope; slot: number } {
  if (scope.variables.size >= VARIABLES_MAX) return bailOut()
  const slot = scope.compilation.slots++
  return { slot, scope: { ...scope, variables: new Map(scope.variables).set(name, { slot, loop }) } }
}

/** Compiles a part whose value is put into the result; references to values that exist are charged. */
export function compileReference(scope: CompileScope, node: AstNode): CompiledNode {
  const evaluate = scope.compile(scope, node)
  if (isConstructor(node)) return evaluate
  const isOwn = isOfElement(scope, node)
  return (frame) => {
    const value = evaluate(frame)
    if (typeof value === 'object' || typeof value === 'string') chargeReference(frame, value, isOwn)
    return value
  }
}

/** A constructed value is bounded by the expression itself, its parts are charged; also where a condition chooses it. */
function isConstructor({ type, then, else: otherwise }: AstNode): boolean {
  if (type !== 'condition') return type === 'unary'
  return [then, otherwise ?? then].every((branch) => isNode(branch) && isConstructor(branch))
}

/** What runs once per element. */
export interface CompiledBody {
  readonly evaluate: CompiledNode
  /** Gas of one run: its nodes and characters. */
  readonly cost: number
}

/** Compiles what runs once per element and whose values are put into the result. */
export function compileBody(scope: CompileScope, node: AstNode): CompiledBody {
  return withCost(scope, () => compileReference(scope, node))
}

/** Compiles what runs once per element and decides about it. */
export function compileTest(scope: CompileScope, node: AstNode): CompiledBody {
  return withCost(scope, () => scope.compile(scope, node))
}

function withCost({ compilation }: CompileScope, compile: () => CompiledNode): CompiledBody {
  const before = compilation.nodes + compilation.characters
  const evaluate = compile()
  return { evaluate, cost: compilation.nodes + compilation.characters - before }
}

/** Whether a part reads nothing but the element of the innermost loop, and that does not come twice. */
function isOfElement(scope: CompileScope, part: unknown): boolean {
  return scope.loop.isFresh && readsElementOnly(scope, part)
}

function readsElementOnly(scope: CompileScope, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return true
  if (Array.isArray(part) && isNode(part[0]) && part[0].type === 'variable') return readsBelow(scope, part)
  if (isNode(part) && !isElementName(scope, part)) return false
  return Object.entries(part).every(([key, inner]) => key === 'procedure' || readsElementOnly(scope, inner))
}

/** The steps after a variable are names in its value. */
function readsBelow(scope: CompileScope, steps: readonly unknown[]): boolean {
  const others = steps.filter((step) => !(isNode(step) && step.type === 'name' && step.stages === undefined))
  return others.every((step) => readsElementOnly(scope, step))
}

function isElementName({ variables, loop, contextLoop }: CompileScope, { type, value }: AstNode): boolean {
  if (type === 'name') return contextLoop === loop
  if (type !== 'variable') return true
  if (value === '') return contextLoop === loop
  return (variables.get(String(value))?.loop ?? OUTERMOST) === loop
}

/** The name of a variable that is a parameter or assigned. */
export function variableName(node: AstNode): string {
  return node.type === 'variable' && typeof node.value === 'string' && node.value !== '' && node.value !== '$'
    ? node.value
    : bailOut()
}
