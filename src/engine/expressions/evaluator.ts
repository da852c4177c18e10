import { availableParallelism } from 'node:os'
import { LRUCache } from 'lru-cache'
import { type Clock, type Failure, systemClock, TtlCache } from '../../foundation/base/index.ts'
import { yieldToEventLoop } from '../../foundation/fair/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { syntaxFailure } from './evaluation-failures.ts'
import { BAILED_OUT, compileInline, type InlineEvaluation } from './inline-evaluator.ts'
import { referencedInputKeys } from './input-analysis.ts'
import { type ExpressionProblem, parseAst } from './parse.ts'
import {
  type AnalysedExpression,
  type EvaluationOptions,
  evaluateInSandbox,
  type QuarantineEvent,
  type SandboxState,
  SLOW_MEMORY_MS,
} from './sandbox-evaluation.ts'
import { SandboxPool } from './sandbox-pool.ts'
import { type StartSandbox, startSandbox } from './sandbox-process.ts'

/** An expression, compiled: what is evaluated often is compiled once. */
export interface CompiledExpression extends AnalysedExpression {
  readonly problem: ExpressionProblem | undefined
  /** Absent: only the sandbox evaluates it. */
  readonly inline: InlineEvaluation | undefined
}

/** Compiles an expression; one that does not parse fails when it is evaluated. */
export function compileExpression(text: string): CompiledExpression {
  const parsed = parseAst(text)
  const analysed = { text, slowUntilMs: 0, wasQuick: false }
  if (!('tree' in parsed)) return { ...analysed, problem: parsed, inline: undefined, inputKeys: undefined }
  const { tree } = parsed
  return { ...analysed, problem: undefined, inline: compileInline(tree), inputKeys: referencedInputKeys(tree) }
}

/**
 * The value of an expression, without an evaluator; `undefined` when only the sandbox finds it, or it fails.
 *
 * Takes at most some milliseconds: many of them in a row have to yield to the event loop.
 */
export function evaluateInline(
  expression: string | CompiledExpression,
  input: JsonObject,
): { readonly value: Json | undefined } | undefined {
  const { inline } = typeof expression === 'string' ? compileExpression(expression) : expression
  const value = inline === undefined ? BAILED_OUT : inline(input)
  return value === BAILED_OUT ? undefined : { value }
}

/** The values of one expression for several inputs. */
export interface ValueColumn {
  /** By input; `undefined` where it has none or failed. */
  readonly values: readonly (Json | undefined)[]
  /** Why it failed, by input. */
  readonly failures: ReadonlyMap<number, Failure>
  /** The inputs for which the sandbox evaluated it. */
  readonly sandboxed: readonly number[]
}

/** Evaluates JSONata written by users. */
export interface Evaluator extends AsyncDisposable {
  /**
   * The value of the expression, `undefined` when it has none.
   *
   * `input` is the input document: its keys are the root names of an expression, `$` and `$$` the whole. It must be plain
   * JSON and is not changed. The result may share parts with it: treat both as read-only.
   *
   * Failures by reason: EXPRESSION_FAILED (does not parse, failed, exceeded a limit; metadata `code` and, where known,
   * `position`), EXPRESSION_QUARANTINED, RATE_LIMITED (too many evaluations of the owner wait), DEADLINE_EXCEEDED
   * (waited too long for its turn), SHUTTING_DOWN, INTERNAL (no sandbox starts).
   */
  evaluate(
    expression: string | CompiledExpression,
    input: JsonObject,
    options?: EvaluationOptions,
  ): Promise<Json | undefined>

  /**
   * The values of each expression for each input, with the same bindings for all; an input for which an expression fails with
   * EXPRESSION_FAILED does not affect the others.
   *
   * The inputs of an expression that the inline evaluator does not cover go to the sandbox in one request, or in several when
   * they are larger than `inputBytesMax` together. `timeoutMs` is for one request; when an input takes the time of a request,
   * those after it are tried again at most twice.
   *
   * Rejects with the failures of `evaluate` that concern no single input: EXPRESSION_FAILED when a text does not parse, and all
   * other reasons.
   */
  evaluateAll(
    expressions: readonly (string | CompiledExpression)[],
    inputs: readonly JsonObject[],
    options?: EvaluationOptions,
  ): Promise<readonly ValueColumn[]>
}

/** Dependencies and limits of an evaluator. */
export interface EvaluatorOptions {
  /** Most child processes; default the number of processors, between 2 and 8. They start on demand. */
  readonly poolSize?: number
  readonly clock?: Pick<Clock, 'now'>
  readonly onQuarantine?: (event: QuarantineEvent) => void
  /** Whether cheap expressions are evaluated in this process; default true. */
  readonly isInline?: boolean
  /** Starts a child process; default the real one. */
  readonly startSandbox?: StartSandbox
}

const SLOW_OWNERS_MAX = 10_000

/** Cache of compiled expressions: entries, and the total length of their texts. */
const CACHED_MAX = 4_000
const CACHED_CHARACTERS_MAX = 4 * 1_048_576

/** Longest time for which inline evaluations hold the event loop. */
const TURN_MS = 5
/** Inputs between two looks at the clock. */
const INPUTS_PER_LOOK = 16
/** Expressions of one call that wait for the sandbox at the same time. */
const SANDBOX_CONCURRENCY = 4

/**
 * Creates an evaluator: expressions that are provably cheap run inline in this process, all others in sandbox processes.
 *
 * Both give the results of JSONata as JSON. Disposing ends the processes; they also end with this process.
 */
export function createEvaluator(options: EvaluatorOptions = {}): Evaluator {
  const clock = options.clock ?? systemClock
  const state: EvaluatorState = {
    pool: new SandboxPool({
      size: Math.max(2, options.poolSize ?? Math.min(8, availableParallelism())),
      startSandbox: options.startSandbox ?? startSandbox,
    }),
    quarantine: new CircuitBreaker(() => clock.now().getTime()),
    compiled: new LRUCache({
      max: CACHED_MAX,
      maxSize: CACHED_CHARACTERS_MAX,
      sizeCalculation: ({ text }) => text.length + 1,
    }),
    isInline: options.isInline ?? true,
    inlineMs: 0,
    slowOwners: new TtlCache({ max: SLOW_OWNERS_MAX, ttlMs: SLOW_MEMORY_MS, clock: systemClock }),
    onQuarantine: options.onQuarantine ?? (() => {}),
  }
  return {
    evaluate: (expression, input, options = {}) => evaluate(state, expression, input, options),
    evaluateAll: (expressions, inputs, options = {}) => evaluateAll(state, expressions, inputs, options),
    [Symbol.asyncDispose]: async () => state.pool[Symbol.dispose](),
  }
}

interface EvaluatorState extends SandboxState {
  readonly compiled: LRUCache<string, CompiledExpression>
  readonly isInline: boolean
  /** What inline evaluations have taken since one of them yielded to the event loop. */
  inlineMs: number
}

/** @throws Failure EXPRESSION_FAILED when it does not parse */
function compiledOf(state: EvaluatorState, expression: string | CompiledExpression): CompiledExpression {
  const compiled = typeof expression === 'string' ? compileCached(state, expression) : expression
  if (compiled.problem) throw syntaxFailure(compiled.problem)
  return compiled
}

function compileCached({ compiled }: EvaluatorState, text: string): CompiledExpression {
  const cached = compiled.get(text)
  if (cached) return cached
  const expression = compileExpression(text)
  compiled.set(text, expression)
  return expression
}

async function evaluate(
  state: EvaluatorState,
  expression: string | CompiledExpression,
  input: JsonObject,
  options: EvaluationOptions,
): Promise<Json | undefined> {
  const [column] = await evaluateAll(state, [expression], [input], options)
  const failure = column?.failures.get(0)
  if (failure !== undefined) throw failure
  return column?.values[0]
}

async function evaluateAll(
  state: EvaluatorState,
  expressions: readonly (string | CompiledExpression)[],
  inputs: readonly JsonObject[],
  options: EvaluationOptions,
): Promise<readonly ValueColumn[]> {
  const columns = expressions.map((expression): OpenColumn => {
    const compiled = compiledOf(state, expression)
    return { expression: compiled, values: new Array(inputs.length), failures: new Map(), sandboxed: [] }
  })
  let lookedAtMs = performance.now()
  for (const column of columns)
    for (let from = 0; from < inputs.length; from += INPUTS_PER_LOOK) {
      fillInline(state, column, inputs, options.bindings, from)
      const nowMs = performance.now()
      state.inlineMs += nowMs - lookedAtMs
      lookedAtMs = nowMs
      if (state.inlineMs < TURN_MS) continue
      state.inlineMs = 0
      await yieldToEventLoop()
      lookedAtMs = performance.now()
    }
  const left = columns.filter(({ sandboxed }) => sandboxed.length > 0)
  if (left.length === 0) return columns
  const open = left.values()
  const work = async (): Promise<void> => {
    for (const column of open) await fillInSandbox(state, column, inputs, options)
  }
  await Promise.all(Array.from({ length: SANDBOX_CONCURRENCY }, work))
  return columns
}

/** A column that is being filled. */
interface OpenColumn extends ValueColumn {
  readonly expression: CompiledExpression
  readonly values: (Json | undefined)[]
  readonly failures: Map<number, Failure>
  readonly sandboxed: number[]
}

function fillInline(
  state: EvaluatorState,
  { expression, values, sandboxed }: OpenColumn,
  inputs: readonly JsonObject[],
  bindings: JsonObject | undefined,
  from: number,
): void {
  const inline = state.isInline ? expression.inline : undefined
  const end = Math.min(inputs.length, from + INPUTS_PER_LOOK)
  for (let at = from; at < end; at++) {
    const value = inline === undefined ? BAILED_OUT : inline(inputs[at] as JsonObject, bindings)
    if (value === BAILED_OUT) sandboxed.push(at)
    else values[at] = value
  }
}

async function fillInSandbox(
  state: EvaluatorState,
  { expression, values, failures, sandboxed }: OpenColumn,
  inputs: readonly JsonObject[],
  options: EvaluationOptions,
): Promise<void> {
  const sent = sandboxed.map((at) => inputs[at] as JsonObject)
  for (const [index, result] of (await evaluateInSandbox(state, expression, sent, options)).entries()) {
    const at = sandboxed[index] as number
    if ('failure' in result) failures.set(at, result.failure)
    else values[at] = result.value
  }
}
