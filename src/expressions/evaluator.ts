import { availableParallelism } from 'node:os'
import { LRUCache } from 'lru-cache'
import { type Clock, type Json, type JsonObject, systemClock, TtlCache, yieldToEventLoop } from '../base/index.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { syntaxFailure } from './evaluation-failures.ts'
import { BAILED_OUT, compileInline, type InlineEvaluation } from './inline-evaluator.ts'
import { GAS_LIMIT } from './inline-frame.ts'
import { referencedInputKeys } from './input-keys.ts'
import { type AstNode, type ExpressionProblem, parseAst } from './parse.ts'
import {
  type AnalysedExpression,
  type EvaluationOptions,
  type EvaluationResult,
  evaluateInSandbox,
  type QuarantineEvent,
  type SandboxState,
  SLOW_MEMORY_MS,
  TIMEOUT_MS,
} from './sandbox-evaluation.ts'
import { SandboxPool } from './sandbox-pool.ts'
import { type StartSandbox, startSandbox } from './sandbox-process.ts'

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
  evaluate(expression: string, input: JsonObject, options?: EvaluationOptions): Promise<Json | undefined>

  /**
   * The results of the expression for each input, in their order: `{value}`, or `{failure}` with EXPRESSION_FAILED for an
   * input for which it failed; the other inputs are not affected. With the same bindings for all.
   *
   * The inputs that the inline evaluator does not cover go to the sandbox in one request, or in several when they are larger
   * than `inputBytesMax` together. `timeoutMs` is for one request, and for the inline evaluation of all; when an input takes
   * the time of a request, those after it are tried again at most twice.
   *
   * Rejects with the failures of `evaluate` that concern no single input: EXPRESSION_FAILED when the text does not parse,
   * and all other reasons.
   */
  evaluateEach(
    expression: string,
    inputs: readonly JsonObject[],
    options?: EvaluationOptions,
  ): Promise<readonly EvaluationResult[]>
}

/** Dependencies and limits of an evaluator. */
export interface EvaluatorOptions {
  /** Most child processes; default the number of processors, between 2 and 8. They start on demand. */
  readonly poolSize?: number
  readonly clock?: Pick<Clock, 'now'>
  readonly onQuarantine?: (event: QuarantineEvent) => void
  /** Of inline evaluation; 0: everything is evaluated in the sandbox. Default GAS_LIMIT. */
  readonly gas?: number
  /** Starts a child process; default the real one. */
  readonly startSandbox?: StartSandbox
}

const SLOW_OWNERS_MAX = 10_000

/** Cache of compiled expressions: entries, and the total length of their texts. */
const CACHED_MAX = 4_000
const CACHED_CHARACTERS_MAX = 4 * 1_048_576

/** Longest time for which inline evaluations hold the event loop, of one expression for several inputs or of several expressions. */
const TURN_MS = 5

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
    gas: options.gas ?? GAS_LIMIT,
    inlineMs: 0,
    slowOwners: new TtlCache({ max: SLOW_OWNERS_MAX, ttlMs: SLOW_MEMORY_MS, clock: systemClock }),
    onQuarantine: options.onQuarantine ?? (() => {}),
  }
  return {
    evaluate: (expression, input, options = {}) => evaluate(state, expression, input, options),
    evaluateEach: (expression, inputs, options = {}) => evaluateEach(state, expression, inputs, options),
    [Symbol.asyncDispose]: async () => state.pool[Symbol.dispose](),
  }
}

interface EvaluatorState extends SandboxState {
  readonly compiled: LRUCache<string, CompiledExpression>
  readonly gas: number
  /** What inline evaluations of single inputs have taken since one of them yielded to the event loop. */
  inlineMs: number
}

/** An analysed expression, in the cache. */
interface CompiledExpression extends AnalysedExpression {
  readonly problem: ExpressionProblem | undefined
  readonly inline: InlineEvaluation | undefined
}

async function evaluate(
  state: EvaluatorState,
  text: string,
  input: JsonObject,
  options: EvaluationOptions,
): Promise<Json | undefined> {
  const compiled = compileCached(state, text)
  if (compiled.problem) throw syntaxFailure(compiled.problem)
  if (compiled.inline) {
    const value = evaluateOne(state, compiled.inline, input, options)
    if (state.inlineMs > TURN_MS) {
      state.inlineMs = 0
      await yieldToEventLoop()
    }
    if (value !== BAILED_OUT) return value
  }
  const [result] = await evaluateInSandbox(state, compiled, [input], options)
  if (result && 'failure' in result) throw result.failure
  return result?.value
}

function evaluateOne(
  state: EvaluatorState,
  run: InlineEvaluation,
  input: JsonObject,
  { bindings }: EvaluationOptions,
): ReturnType<InlineEvaluation> {
  const startedMs = performance.now()
  const value = run(input, bindings)
  state.inlineMs += performance.now() - startedMs
  return value
}

async function evaluateEach(
  state: EvaluatorState,
  text: string,
  inputs: readonly JsonObject[],
  options: EvaluationOptions,
): Promise<readonly EvaluationResult[]> {
  const compiled = compileCached(state, text)
  if (compiled.problem) throw syntaxFailure(compiled.problem)
  const results: readonly InlineResult[] = compiled.inline
    ? await evaluateInline(compiled.inline, inputs, options)
    : inputs.map(() => BAILED_OUT)
  const left = inputs.filter((_input, index) => results[index] === BAILED_OUT)
  const answers = (await evaluateInSandbox(state, compiled, left, options)).values()
  return results.map((result) => (result === BAILED_OUT ? (answers.next().value ?? NO_VALUE) : result))
}

type InlineResult = EvaluationResult | typeof BAILED_OUT

const NO_VALUE: EvaluationResult = { value: undefined }

/** Gives other work of this process its turn between inputs; the inputs for which there is no time are left to the sandbox. */
async function evaluateInline(
  run: InlineEvaluation,
  inputs: readonly JsonObject[],
  { bindings, timeoutMs = TIMEOUT_MS }: EvaluationOptions,
): Promise<readonly InlineResult[]> {
  const results: InlineResult[] = []
  let spentMs = 0
  let turnStart = performance.now()
  for (const input of inputs) {
    const value = spentMs < timeoutMs ? run(input, bindings) : BAILED_OUT
    results.push(value === BAILED_OUT ? BAILED_OUT : { value })
    const turnMs = performance.now() - turnStart
    if (turnMs < TURN_MS) continue
    spentMs += turnMs
    await yieldToEventLoop()
    turnStart = performance.now()
  }
  return results
}

function compileCached(state: EvaluatorState, text: string): CompiledExpression {
  const cached = state.compiled.get(text)
  if (cached) return cached
  const parsed = parseAst(text)
  const known =
    'tree' in parsed ? analyse(parsed.tree, state.gas) : { problem: parsed, inline: undefined, inputKeys: undefined }
  const compiled: CompiledExpression = { text, ...known, slowUntilMs: 0, wasQuick: false }
  state.compiled.set(text, compiled)
  return compiled
}

function analyse(tree: AstNode, gas: number): Pick<CompiledExpression, 'problem' | 'inline' | 'inputKeys'> {
  const inline = gas > 0 ? compileInline(tree, gas) : undefined
  return { problem: undefined, inline, inputKeys: referencedInputKeys(tree) }
}
