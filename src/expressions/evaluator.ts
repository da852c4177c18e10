import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { LRUCache } from 'lru-cache'
import {
  type Clock,
  exceedsJsonSize,
  Failure,
  type Json,
  type JsonObject,
  systemClock,
  TtlCache,
} from '../base/index.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { BAILED_OUT, compileInline, type InlineExpression } from './inline-evaluator.ts'
import { pickInputKeys, referencedInputKeys } from './input-keys.ts'
import { type AstNode, type ExpressionProblem, parseAst } from './parse.ts'
import type { EvaluationError, SandboxResponse } from './sandbox/protocol.ts'
import { SandboxPool } from './sandbox-pool.ts'
import { type EvaluationOutcome, type KillCause, type StartSandbox, startSandbox } from './sandbox-process.ts'

/** Limits of one evaluation. */
export interface EvaluationLimits {
  /** Tenant of the evaluation, e.g. an environment id: unit of fairness and of the circuit breaker. Default: one shared owner. */
  readonly owner?: string
  /** Default 500. An evaluation that overruns it is killed at most 100 ms later. */
  readonly timeoutMs?: number
  /** Size of the input as JSON; default 1 MiB, at most 5 MiB. Holds in the sandbox only, not for inline evaluation. */
  readonly inputBytesMax?: number
  /** Size of the result as JSON; default 1 MiB, at most 5 MiB. Holds in the sandbox only, not for inline evaluation. */
  readonly resultBytesMax?: number
}

/** Options of one evaluation. */
interface EvaluationOptions extends EvaluationLimits {
  /**
   * Values of variables: `{previous: …}` is `$previous`. Plain JSON, counted with the input. Must not have the name of a
   * JSONata function.
   */
  readonly bindings?: JsonObject
  /**
   * The input is from a sender that is not authenticated. Evaluations of such inputs are counted apart for the circuit breaker,
   * so that forged inputs do not stop the expression for authentic ones. Default false.
   */
  readonly isUnverified?: boolean
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
  evaluate(expression: string, input: JsonObject, options?: EvaluationOptions): Promise<Json | undefined>
}

/** The circuit breaker opened for an expression; its owner should be notified. */
export interface QuarantineEvent {
  readonly owner: string
  readonly expression: string
  /** SHA-256 of the expression, hexadecimal. */
  readonly hash: string
}

/** Dependencies and limits of an evaluator. */
export interface EvaluatorOptions {
  /** Most child processes; default the number of processors, between 2 and 8. They start on demand. */
  readonly poolSize?: number
  readonly clock?: Pick<Clock, 'now'>
  readonly onQuarantine?: (event: QuarantineEvent) => void
  /** Starts a child process; default the real one. */
  readonly startSandbox?: StartSandbox
}

const TIMEOUT_MS = 500
/** Share of the timeout after which JSONata's own check of the clock ends an evaluation, before the process is killed. */
const SOFT_TIMEOUT_SHARE = 0.8
const BYTES = 1_048_576
const BYTES_MAX = 5 * BYTES
const SHARED_OWNER = ''

/** An evaluation that takes more processor time marks its expression and its owner as slow for a minute. */
const SLOW_MS = 20
const SLOW_MEMORY_MS = 60_000
const SLOW_OWNERS_MAX = 10_000

/** Cache of compiled expressions: entries, and the total length of their texts. */
const CACHED_MAX = 4_000
const CACHED_CHARACTERS_MAX = 4 * 1_048_576

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
    slowOwners: new TtlCache({ max: SLOW_OWNERS_MAX, ttlMs: SLOW_MEMORY_MS, clock: systemClock }),
    onQuarantine: options.onQuarantine ?? (() => {}),
  }
  return {
    evaluate: (expression, input, options = {}) => evaluate(state, expression, input, options),
    [Symbol.asyncDispose]: async () => state.pool[Symbol.dispose](),
  }
}

interface EvaluatorState {
  readonly pool: SandboxPool
  readonly quarantine: CircuitBreaker
  readonly compiled: LRUCache<string, CompiledExpression>
  /** Owners with a slow evaluation lately. */
  readonly slowOwners: TtlCache<true>
  readonly onQuarantine: (event: QuarantineEvent) => void
}

/** An analysed expression, in the cache. */
interface CompiledExpression {
  readonly text: string
  readonly problem: ExpressionProblem | undefined
  readonly inline: InlineExpression | undefined
  /** Keys of the input that the sandbox needs; `undefined`: all. */
  readonly inputKeys: ReadonlySet<string> | undefined
  /** On the scale of `performance.now()`; 0 when it never was slow. */
  slowUntilMs: number
  /** An evaluation in the sandbox was not slow. */
  wasQuick: boolean
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
    const value = compiled.inline(input, options.bindings)
    if (value !== BAILED_OUT) return value
  }
  return evaluateInSandbox(state, compiled, input, options)
}

function compileCached(state: EvaluatorState, text: string): CompiledExpression {
  const cached = state.compiled.get(text)
  if (cached) return cached
  const parsed = parseAst(text)
  const known = 'tree' in parsed ? analyse(parsed.tree) : { problem: parsed, inline: undefined, inputKeys: undefined }
  const compiled: CompiledExpression = { text, ...known, slowUntilMs: 0, wasQuick: false }
  state.compiled.set(text, compiled)
  return compiled
}

function analyse(tree: AstNode): Pick<CompiledExpression, 'problem' | 'inline' | 'inputKeys'> {
  return { problem: undefined, inline: compileInline(tree), inputKeys: referencedInputKeys(tree) }
}

async function evaluateInSandbox(
  state: EvaluatorState,
  compiled: CompiledExpression,
  input: JsonObject,
  options: EvaluationOptions,
): Promise<Json | undefined> {
  const owner = options.owner ?? SHARED_OWNER
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS
  const breakerOwner = options.isUnverified === true ? `${owner}\nunverified` : owner
  assertNotQuarantined(state, compiled, breakerOwner)
  const outcome = await state.pool.run({
    owner,
    timeoutMs,
    line: requestLine(compiled.text, pickInputKeys(input, compiled.inputKeys), timeoutMs, options),
    isSlow: () => isSlow(state, compiled, owner),
  })
  return handleOutcome(state, compiled, { owner, breakerOwner }, outcome)
}

function assertNotQuarantined(state: EvaluatorState, compiled: CompiledExpression, owner: string): void {
  if (state.quarantine.isEmpty) return
  const untilMs = state.quarantine.blockedUntilMs(owner, hashOf(compiled.text))
  if (untilMs !== undefined) throw quarantineFailure(new Date(untilMs))
}

/** The request as one line of JSON. The input is its last member and stringified once; only the sandbox parses the line. */
function requestLine(text: string, input: JsonObject, timeoutMs: number, options: EvaluationOptions): string {
  const inputBytesMax = Math.min(options.inputBytesMax ?? BYTES, BYTES_MAX)
  const resultBytesMax = Math.min(options.resultBytesMax ?? BYTES, BYTES_MAX)
  if (exceedsJsonSize(input, inputBytesMax)) throw inputTooLarge(inputBytesMax)
  const inputJson = JSON.stringify(input)
  const bindings = options.bindings === undefined ? '' : `"bindings":${JSON.stringify(options.bindings)},`
  if (isLongerThan(bindings + inputJson, inputBytesMax)) throw inputTooLarge(inputBytesMax)
  const head = { text, timeoutMs: Math.floor(timeoutMs * SOFT_TIMEOUT_SHARE), resultBytesMax }
  return `${JSON.stringify(head).slice(0, -1)},${bindings}"input":${inputJson}}\n`
}

/** A character takes one to three bytes, so that most texts need no exact count. */
function isLongerThan(text: string, bytesMax: number): boolean {
  if (text.length > bytesMax) return true
  return text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax
}

interface EvaluationOwners {
  readonly owner: string
  /** For whom the circuit breaker counts. */
  readonly breakerOwner: string
}

function handleOutcome(
  state: EvaluatorState,
  compiled: CompiledExpression,
  owners: EvaluationOwners,
  outcome: EvaluationOutcome,
): Json | undefined {
  switch (outcome.kind) {
    case 'answer':
      if (outcome.answer.cpuMs > SLOW_MS) markSlow(state, compiled, owners.owner)
      else compiled.wasQuick = true
      return resultOf(outcome.answer)
    case 'killed':
      markSlow(state, compiled, owners.owner)
      recordKill(state, compiled, owners)
      throw killFailure(outcome.cause)
    case 'rejected':
      throw rejectionFailure(outcome.cause)
  }
}

function markSlow(state: EvaluatorState, compiled: CompiledExpression, owner: string): void {
  compiled.slowUntilMs = performance.now() + SLOW_MEMORY_MS
  state.slowOwners.set(owner, true)
}

/** Of an owner with a slow evaluation in the last minute, expressions that were never evaluated count as slow. */
function isSlow(state: EvaluatorState, compiled: CompiledExpression, owner: string): boolean {
  // Called many times per evaluation, and few expressions are slow: the clock is read only for those.
  if (compiled.slowUntilMs > 0 && compiled.slowUntilMs > performance.now()) return true
  return !compiled.wasQuick && state.slowOwners.get(owner) === true
}

function recordKill(
  state: EvaluatorState,
  compiled: CompiledExpression,
  { owner, breakerOwner }: EvaluationOwners,
): void {
  const hash = hashOf(compiled.text)
  if (state.quarantine.recordFailure(breakerOwner, hash)) state.onQuarantine({ owner, expression: compiled.text, hash })
}

function resultOf({ kind, payload }: SandboxResponse): Json | undefined {
  switch (kind) {
    case 'value':
      return JSON.parse(payload)
    case 'nothing':
    case 'ready':
      return undefined
    case 'error':
      throw evaluationFailure(JSON.parse(payload))
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The expression does not parse, or is longer or deeper than allowed. */
function syntaxFailure({ problem, code, position }: ExpressionProblem): Failure {
  return expressionFailed(`the expression cannot be used: ${problem}`, { code, position: String(position) })
}

/** The evaluation ended with an error of JSONata or of one of its functions. */
function evaluationFailure({ code, message, position }: EvaluationError): Failure {
  const where = position === undefined ? '' : ` at position ${position}`
  const metadata = position === undefined ? { code } : { code, position: String(position) }
  return expressionFailed(`the expression failed${where}: ${message}`, metadata)
}

/** The process of the evaluation was killed. */
function killFailure(cause: KillCause): Failure {
  switch (cause) {
    case 'time':
      return expressionFailed('the expression took too long and was stopped', { code: 'TIME_LIMIT' })
    case 'memory':
    case 'crash':
      return expressionFailed('the expression used too much memory and was stopped', { code: 'MEMORY_LIMIT' })
  }
}

/** The input is larger than the caller allows. */
function inputTooLarge(bytesMax: number): Failure {
  return expressionFailed(`the input of the expression is larger than ${bytesMax} bytes`, { code: 'INPUT_TOO_LARGE' })
}

/** The expression was killed too often for this owner. */
function quarantineFailure(until: Date): Failure {
  const time = until.toISOString()
  const message = `the expression exceeded its limits several times and is not evaluated until ${time}; change it to go on`
  return new Failure('EXPRESSION_QUARANTINED', message, { metadata: { until: time } })
}

/** The evaluation did not start. */
function rejectionFailure(cause: Extract<EvaluationOutcome, { kind: 'rejected' }>['cause']): Failure {
  switch (cause) {
    case 'queue_full':
      return new Failure('RATE_LIMITED', 'too many expressions are waiting to be evaluated', { retryAfterSeconds: 1 })
    case 'waited_too_long':
      return new Failure('DEADLINE_EXCEEDED', 'the expression waited too long to be evaluated')
    case 'closed':
      return new Failure('SHUTTING_DOWN', 'expressions are not evaluated any more')
    case 'no_sandbox':
      return new Failure('INTERNAL', 'the processes that evaluate expressions do not start')
  }
}

function expressionFailed(message: string, metadata: Readonly<Record<string, string>>): Failure {
  return new Failure('EXPRESSION_FAILED', message, { metadata })
}
