import { createHash } from 'node:crypto'
import type { Failure, TtlCache } from '../../foundation/base/index.ts'
import { exceedsJsonSize, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import {
  ambiguousNumber,
  evaluationFailure,
  inputTooLarge,
  killFailure,
  quarantineFailure,
  rejectionFailure,
} from './evaluation-failures.ts'
import { pickInputKeys } from './input-analysis.ts'
import { restorePassedNumbers } from './restore-digits.ts'
import type { SandboxResponse } from './sandbox/protocol.ts'
import type { SandboxPool } from './sandbox-pool.ts'
import type { EvaluationOutcome } from './sandbox-process.ts'

/** The result of one input of several: the value of the expression, `undefined` when it has none, or why it failed. */
export type EvaluationResult = { readonly value: Json | undefined } | { readonly failure: Failure }

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
export interface EvaluationOptions extends EvaluationLimits {
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

/** An expression as the sandbox needs it. */
export interface AnalysedExpression {
  readonly text: string
  /** Keys of the input that the sandbox needs; `undefined`: all. */
  readonly inputKeys: ReadonlySet<string> | undefined
  /** On the scale of `performance.now()`; 0 when it never was slow. */
  slowUntilMs: number
  /** An evaluation in the sandbox was not slow. */
  wasQuick: boolean
}

/** What evaluations in the sandbox share. */
export interface SandboxState {
  readonly pool: SandboxPool
  readonly quarantine: CircuitBreaker
  /** Owners with a slow evaluation lately. */
  readonly slowOwners: TtlCache<true>
  readonly onQuarantine: (event: QuarantineEvent) => void
}

/** The circuit breaker opened for an expression; its owner should be notified. */
export interface QuarantineEvent {
  readonly owner: string
  readonly expression: string
  /** SHA-256 of the expression, hexadecimal. */
  readonly hash: string
}

/** Default of `timeoutMs`. */
const TIMEOUT_MS = 500
/** Share of the timeout after which JSONata's own check of the clock ends an evaluation, before the process is killed. */
const SOFT_TIMEOUT_SHARE = 0.8
const BYTES = 1_048_576
const BYTES_MAX = 5 * BYTES
const SHARED_OWNER = ''

/** An evaluation that takes more processor time marks its expression and its owner as slow for a minute. */
const SLOW_MS = 20

/** How long an expression or an owner counts as slow. */
export const SLOW_MEMORY_MS = 60_000

/** Most inputs of one request: the evaluations after it wait for all of them. */
const REQUEST_INPUTS_MAX = 500

/** After so many requests that were killed or ran out of time, the inputs that are left are not evaluated. */
const TIME_LIMIT_HITS_MAX = 3

/**
 * Evaluates an expression over some inputs in the sandbox, in as few requests as the size of the inputs allows: one, for up
 * to 500 inputs of together `inputBytesMax`.
 *
 * `timeoutMs` is for one request. The inputs after one that took the time are sent again, a few times.
 *
 * @throws Failure that concerns no single input: quarantined, not started
 */
export async function evaluateInSandbox(
  state: SandboxState,
  expression: AnalysedExpression,
  inputs: readonly JsonObject[],
  options: EvaluationOptions,
): Promise<readonly EvaluationResult[]> {
  const plan = newPlan(state, expression, options)
  const results: EvaluationResult[] = []
  const bindings = options.bindings === undefined ? '' : `"bindings":${JSON.stringify(options.bindings)},`
  const variables = options.bindings === undefined ? [] : [options.bindings]
  for (let hits = 0; results.length < inputs.length; ) {
    if (hits >= TIME_LIMIT_HITS_MAX) results.push({ failure: killFailure('time') })
    else {
      const request = nextRequest(plan, bindings, inputs, results.length)
      if (request.count === 0) results.push({ failure: inputTooLarge(plan.inputBytesMax) })
      else {
        const answered = await runRequest(plan, request)
        if (answered.length < request.count || answered.some(isTimeLimit)) hits++
        for (const result of answered)
          results.push(withPassedNumbers(result, [inputs[results.length] ?? null, ...variables]))
      }
    }
  }
  return results
}

/** What all requests of one evaluation share. */
interface RequestPlan {
  readonly state: SandboxState
  readonly expression: AnalysedExpression
  readonly owner: string
  /** For whom the circuit breaker counts. */
  readonly breakerOwner: string
  readonly timeoutMs: number
  readonly inputBytesMax: number
  readonly resultBytesMax: number
}

function newPlan(state: SandboxState, expression: AnalysedExpression, options: EvaluationOptions): RequestPlan {
  const owner = options.owner ?? SHARED_OWNER
  return {
    state,
    expression,
    owner,
    breakerOwner: options.isUnverified === true ? `${owner}\nunverified` : owner,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    inputBytesMax: Math.min(options.inputBytesMax ?? BYTES, BYTES_MAX),
    resultBytesMax: Math.min(options.resultBytesMax ?? BYTES, BYTES_MAX),
  }
}

interface Request {
  readonly line: string
  /** Inputs in the line; 0 when the first one is too large. */
  readonly count: number
}

/** The next inputs as one line of JSON. They are its last member and stringified once; only the sandbox parses the line. */
function nextRequest(plan: RequestPlan, bindings: string, inputs: readonly JsonObject[], from: number): Request {
  const texts: string[] = []
  let length = Buffer.byteLength(bindings)
  for (const input of inputs.slice(from, from + REQUEST_INPUTS_MAX)) {
    const read = pickInputKeys(input, plan.expression.inputKeys)
    if (exceedsJsonSize(read, plan.inputBytesMax - length)) break
    const text = JSON.stringify(read)
    if (isLongerThan(text, plan.inputBytesMax - length)) break
    texts.push(text)
    length += Buffer.byteLength(text)
  }
  const head = {
    text: plan.expression.text,
    timeoutMs: Math.floor(plan.timeoutMs * SOFT_TIMEOUT_SHARE),
    resultBytesMax: plan.resultBytesMax,
    totalBytesMax: BYTES_MAX,
  }
  return {
    line: `${JSON.stringify(head).slice(0, -1)},${bindings}"inputs":[${texts.join()}]}\n`,
    count: texts.length,
  }
}

/** A character takes one to three bytes, so that most texts need no exact count. */
function isLongerThan(text: string, bytesMax: number): boolean {
  if (text.length > bytesMax) return true
  return text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax
}

/** @returns the results of the first inputs of the request, at least of one */
async function runRequest(plan: RequestPlan, { line, count }: Request): Promise<readonly EvaluationResult[]> {
  const { owner, timeoutMs } = plan
  assertNotQuarantined(plan)
  return handleOutcome(
    plan,
    await plan.state.pool.run({ owner, timeoutMs, line, inputCount: count, isSlow: () => isSlow(plan) }),
  )
}

function assertNotQuarantined({ state, expression, breakerOwner }: RequestPlan): void {
  if (state.quarantine.isEmpty) return
  const untilMs = state.quarantine.blockedUntilMs(breakerOwner, hashOf(expression.text))
  if (untilMs !== undefined) throw quarantineFailure(new Date(untilMs))
}

function handleOutcome(plan: RequestPlan, outcome: EvaluationOutcome): readonly EvaluationResult[] {
  switch (outcome.kind) {
    case 'answered':
      if (outcome.answers.some(({ cpuMs }) => cpuMs > SLOW_MS)) markSlow(plan)
      else plan.expression.wasQuick = true
      return resultsOf(outcome.answers)
    case 'killed':
      markSlow(plan)
      recordKill(plan)
      return [...resultsOf(outcome.answers), { failure: killFailure(outcome.cause) }]
    case 'rejected':
      throw rejectionFailure(outcome.cause)
  }
}

function resultsOf(answers: readonly SandboxResponse[]): EvaluationResult[] {
  return answers.filter(({ kind }) => kind !== 'skipped').map(resultOf)
}

function resultOf({ kind, payload }: SandboxResponse): EvaluationResult {
  switch (kind) {
    case 'value':
      return { value: JSON.parse(payload) }
    case 'error':
      return { failure: evaluationFailure(JSON.parse(payload)) }
    case 'nothing':
    case 'ready':
    case 'skipped':
      return { value: undefined }
  }
}

function withPassedNumbers(result: EvaluationResult, sources: readonly Json[]): EvaluationResult {
  if ('failure' in result || result.value === undefined) return result
  const restored = restorePassedNumbers(result.value, sources)
  return 'kind' in restored ? { failure: ambiguousNumber() } : restored
}

function isTimeLimit(result: EvaluationResult): boolean {
  return 'failure' in result && TIME_LIMIT_CODES.has(result.failure.metadata.code ?? '')
}

/** Of killed evaluations, and of JSONata's own check of the clock. */
const TIME_LIMIT_CODES: ReadonlySet<string> = new Set(['TIME_LIMIT', 'MEMORY_LIMIT', 'D1012'])

function markSlow({ state, expression, owner }: RequestPlan): void {
  expression.slowUntilMs = performance.now() + SLOW_MEMORY_MS
  state.slowOwners.set(owner, true)
}

/** Of an owner with a slow evaluation in the last minute, expressions that were never evaluated count as slow. */
function isSlow({ state, expression, owner }: RequestPlan): boolean {
  // Called many times per evaluation, and few expressions are slow: the clock is read only for those.
  if (expression.slowUntilMs > 0 && expression.slowUntilMs > performance.now()) return true
  return !expression.wasQuick && state.slowOwners.get(owner) === true
}

function recordKill({ state, expression, owner, breakerOwner }: RequestPlan): void {
  const hash = hashOf(expression.text)
  if (state.quarantine.recordFailure(breakerOwner, hash))
    state.onQuarantine({ owner, expression: expression.text, hash })
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
