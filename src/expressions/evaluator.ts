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

/** Bounds of one evaluation; what is left out has the default. */
export interface EvaluationLimits {
  /** Whose evaluation it is, e.g. an environment id: owners are served in turn, and set aside apart. Default: shared. */
  readonly owner?: string
  /** Default 500. An evaluation that ignores it is killed at most 100 ms later. */
  readonly timeoutMs?: number
  /** Of the roots as JSON; default 1 MiB, at most 5 MiB. Does not bind what the fast lane answers. */
  readonly inputBytesMax?: number
  /** Of the result as JSON; default 1 MiB, at most 5 MiB. Does not bind what the fast lane answers. */
  readonly resultBytesMax?: number
}

/** What one evaluation is given besides its roots. */
interface EvaluationOptions extends EvaluationLimits {
  /**
   * Values of variables: `{previous: …}` is `$previous`. Plain JSON, counted with the roots. A name that JSONata gives to a
   * function is not to be bound.
   */
  readonly bindings?: JsonObject
}

/** Evaluates JSONata written by users. */
export interface Evaluator extends AsyncDisposable {
  /**
   * The value of the expression, `undefined` when it has none.
   *
   * `roots` is the input document: its keys are the names an expression starts from, `$` and `$$` are the whole. It must be
   * plain JSON and is not changed. The result may share parts with it: treat both as read-only.
   *
   * Failures by reason: EXPRESSION_FAILED (does not parse, failed, exceeded a limit; metadata `code` and, where known,
   * `position`), EXPRESSION_QUARANTINED, RATE_LIMITED (too many evaluations of the owner wait), DEADLINE_EXCEEDED
   * (waited too long for its turn), SHUTTING_DOWN, INTERNAL (no sandbox starts).
   */
  evaluate(expression: string, roots: JsonObject, options?: EvaluationOptions): Promise<Json | undefined>
}

/** An expression was set aside; to be told to its owner. */
export interface QuarantineEvent {
  readonly owner: string
  readonly expression: string
  /** SHA-256 of the expression, hexadecimal. */
  readonly hash: string
}

/** What an evaluator is built from. */
export interface EvaluatorOptions {
  /** Child processes at most; default the number of processors, between 2 and 8. They start when needed. */
  readonly poolSize?: number
  readonly clock?: Pick<Clock, 'now'>
  readonly onQuarantine?: (event: QuarantineEvent) => void
  /** How a child process is started; default the real one. */
  readonly startSandbox?: StartSandbox
}

const TIMEOUT_MS = 500
/** Share of the time after which an evaluation that still looks at the clock ends by itself. */
const SOFT_TIMEOUT_SHARE = 0.8
const BYTES = 1_048_576
const BYTES_MAX = 5 * BYTES
const SHARED_OWNER = ''

/** Evaluations that take more processor time mark their expression and their owner for a while. */
const SLOW_MS = 20
const SLOW_MEMORY_MS = 60_000
const SLOW_OWNERS_MAX = 10_000

/** Compiled expressions kept, and the length of their texts together. */
const CACHED_MAX = 4_000
const CACHED_CHARACTERS_MAX = 4 * 1_048_576

/**
 * Opens an evaluator: expressions that are provably cheap run here, all others in child processes.
 *
 * Both give the results of JSONata as JSON. Dispose of it to end the processes; they also end with this process.
 */
export function createEvaluator(options: EvaluatorOptions = {}): Evaluator {
  const clock = options.clock ?? systemClock
  const service: EvaluatorState = {
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
    evaluate: (expression, roots, options = {}) => evaluate(service, expression, roots, options),
    [Symbol.asyncDispose]: async () => service.pool[Symbol.dispose](),
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

/** What is known about an expression. */
interface CompiledExpression {
  readonly text: string
  readonly problem: ExpressionProblem | undefined
  readonly inline: InlineExpression | undefined
  /** Keys of the roots that the sandbox needs; `undefined`: all. */
  readonly inputKeys: ReadonlySet<string> | undefined
  /** On the scale of `performance.now()`; 0: it never was slow. */
  slowUntilMs: number
  /** Whether an evaluation in the sandbox was quick. */
  wasQuick: boolean
}

async function evaluate(
  service: EvaluatorState,
  text: string,
  roots: JsonObject,
  options: EvaluationOptions,
): Promise<Json | undefined> {
  const compiled = compileCached(service, text)
  if (compiled.problem) throw syntaxFailure(compiled.problem)
  if (compiled.inline) {
    const value = compiled.inline(roots, options.bindings)
    if (value !== BAILED_OUT) return value
  }
  return evaluateInSandbox(service, compiled, roots, options)
}

function compileCached(service: EvaluatorState, text: string): CompiledExpression {
  const cached = service.compiled.get(text)
  if (cached) return cached
  const parsed = parseAst(text)
  const known = 'tree' in parsed ? analyse(parsed.tree) : { problem: parsed, inline: undefined, inputKeys: undefined }
  const compiled: CompiledExpression = { text, ...known, slowUntilMs: 0, wasQuick: false }
  service.compiled.set(text, compiled)
  return compiled
}

function analyse(tree: AstNode): Pick<CompiledExpression, 'problem' | 'inline' | 'inputKeys'> {
  return { problem: undefined, inline: compileInline(tree), inputKeys: referencedInputKeys(tree) }
}

async function evaluateInSandbox(
  service: EvaluatorState,
  compiled: CompiledExpression,
  roots: JsonObject,
  options: EvaluationOptions,
): Promise<Json | undefined> {
  const owner = options.owner ?? SHARED_OWNER
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS
  assertNotQuarantined(service, compiled, owner)
  const outcome = await service.pool.run({
    owner,
    timeoutMs,
    line: requestLine(compiled.text, pickInputKeys(roots, compiled.inputKeys), timeoutMs, options),
    isSlow: () => isSlow(service, compiled, owner),
  })
  return handleOutcome(service, compiled, owner, outcome)
}

function assertNotQuarantined(service: EvaluatorState, compiled: CompiledExpression, owner: string): void {
  if (service.quarantine.isEmpty) return
  const untilMs = service.quarantine.blockedUntilMs(owner, hashOf(compiled.text))
  if (untilMs !== undefined) throw quarantineFailure(new Date(untilMs))
}

/** The roots go last and are written once: the sandbox parses the line, this process only puts it together. */
function requestLine(text: string, roots: JsonObject, timeoutMs: number, options: EvaluationOptions): string {
  const inputBytesMax = Math.min(options.inputBytesMax ?? BYTES, BYTES_MAX)
  const resultBytesMax = Math.min(options.resultBytesMax ?? BYTES, BYTES_MAX)
  if (exceedsJsonSize(roots, inputBytesMax)) throw inputTooLarge(inputBytesMax)
  const input = JSON.stringify(roots)
  const bindings = options.bindings === undefined ? '' : `"bindings":${JSON.stringify(options.bindings)},`
  if (isLongerThan(bindings + input, inputBytesMax)) throw inputTooLarge(inputBytesMax)
  const head = { text, timeoutMs: Math.floor(timeoutMs * SOFT_TIMEOUT_SHARE), resultBytesMax }
  return `${JSON.stringify(head).slice(0, -1)},${bindings}"input":${input}}\n`
}

/** A character takes one to three bytes, so most texts need no counting. */
function isLongerThan(text: string, bytesMax: number): boolean {
  if (text.length > bytesMax) return true
  return text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax
}

function handleOutcome(
  service: EvaluatorState,
  compiled: CompiledExpression,
  owner: string,
  outcome: EvaluationOutcome,
): Json | undefined {
  switch (outcome.kind) {
    case 'answer':
      if (outcome.answer.cpuMs > SLOW_MS) markSlow(service, compiled, owner)
      else compiled.wasQuick = true
      return resultOf(outcome.answer)
    case 'killed':
      markSlow(service, compiled, owner)
      recordKill(service, compiled, owner)
      throw killFailure(outcome.cause)
    case 'refused':
      throw rejectionFailure(outcome.cause)
  }
}

function markSlow(service: EvaluatorState, compiled: CompiledExpression, owner: string): void {
  compiled.slowUntilMs = performance.now() + SLOW_MEMORY_MS
  service.slowOwners.set(owner, true)
}

/** An owner who was slow lately does not get the benefit of the doubt for expressions that were never evaluated. */
function isSlow(service: EvaluatorState, compiled: CompiledExpression, owner: string): boolean {
  // Asked many times per evaluation, of expressions that hardly ever are: the clock is read only where it matters.
  if (compiled.slowUntilMs > 0 && compiled.slowUntilMs > performance.now()) return true
  return !compiled.wasQuick && service.slowOwners.get(owner) === true
}

function recordKill(service: EvaluatorState, compiled: CompiledExpression, owner: string): void {
  const hash = hashOf(compiled.text)
  if (service.quarantine.recordFailure(owner, hash)) service.onQuarantine({ owner, expression: compiled.text, hash })
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

/** JSONata or one of its functions refused while evaluating. */
function evaluationFailure({ code, message, position }: EvaluationError): Failure {
  const where = position === undefined ? '' : ` at position ${position}`
  const metadata = position === undefined ? { code } : { code, position: String(position) }
  return expressionFailed(`the expression failed${where}: ${message}`, metadata)
}

/** The evaluation had to be stopped from outside. */
function killFailure(cause: KillCause): Failure {
  switch (cause) {
    case 'time':
      return expressionFailed('the expression took too long and was stopped', { code: 'TIME_LIMIT' })
    case 'memory':
    case 'crash':
      return expressionFailed('the expression used too much memory and was stopped', { code: 'MEMORY_LIMIT' })
  }
}

/** The roots are larger than the caller allows. */
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
function rejectionFailure(cause: Extract<EvaluationOutcome, { kind: 'refused' }>['cause']): Failure {
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
