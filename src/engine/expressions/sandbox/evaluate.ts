import jsonata from 'jsonata'
import { registerFunctions } from './functions.ts'
import { type EvaluationError, type EvaluationRequest, type SandboxResponse, WALL_FACTOR } from './protocol.ts'

/** Most nested evaluations. Generous, because the members of one constructor count as nested: they start together. */
const STACK_MAX = 2_000

/** Most elements of one sequence. */
const SEQUENCE_MAX = 100_000

/** Cache size: characters of the compiled expressions; a tree takes some hundred bytes per character. */
const CACHED_CHARACTERS_MAX = 64 * 1024

const MESSAGE_LENGTH_MAX = 300

/** Evaluates the inputs of one request, one after the other, and responds to each when it has ended; never throws. */
export async function evaluate(request: EvaluationRequest, respond: (answer: SandboxResponse) => void): Promise<void> {
  const limit = new TimeLimit(request.timeoutMs)
  let bytesLeft = request.totalBytesMax
  for (const [index, input] of request.inputs.entries()) {
    if (index > 0 && limit.isReached) {
      respond({ kind: 'skipped', cpuMs: 0, payload: '' })
      continue
    }
    const resultBytesMax = Math.min(request.resultBytesMax, bytesLeft)
    const answer = await evaluateTimed({ ...request, resultBytesMax }, limit, input)
    bytesLeft -= Buffer.byteLength(answer.payload)
    respond(answer)
  }
}

/** The clock is read at every so many steps of an evaluation. */
const READS_PER_CHECK = 64

/** The time of one request. */
class TimeLimit {
  readonly #timeoutMs: number
  readonly #startMs = performance.now()
  readonly #startCpu = process.cpuUsage()
  #reads = 0
  #isReached = false

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  get isReached(): boolean {
    this.#isReached ||= this.#hasPassed()
    return this.#isReached
  }

  /** Called at each step. @throws Error as JSONata does when its own timeout, which goes by the clock, has passed */
  check(): void {
    this.#reads += 1
    if (this.#reads % READS_PER_CHECK !== 0 || !this.isReached) return
    throw Object.assign(new Error('time limit'), { code: 'D1012', value: this.#timeoutMs })
  }

  #hasPassed(): boolean {
    const wallMs = performance.now() - this.#startMs
    if (wallMs < this.#timeoutMs) return false
    return wallMs >= this.#timeoutMs * WALL_FACTOR || cpuMsSince(this.#startCpu) >= this.#timeoutMs
  }
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

async function evaluateTimed(request: EvaluationRequest, limit: TimeLimit, input: unknown): Promise<SandboxResponse> {
  const before = process.cpuUsage()
  const result = await evaluateInput(request, limit, input)
  return { ...result, cpuMs: Math.round(cpuMsSince(before)) }
}

async function evaluateInput(
  request: EvaluationRequest,
  limit: TimeLimit,
  input: unknown,
): Promise<Omit<SandboxResponse, 'cpuMs'>> {
  try {
    const { expression, limits } = compileCached(request.text)
    limits.current = limit
    const value = await expression.evaluate(input, request.bindings)
    const json = serialise(value, request.resultBytesMax)
    return json === undefined ? { kind: 'nothing', payload: '' } : { kind: 'value', payload: json }
  } catch (error) {
    return { kind: 'error', payload: JSON.stringify(toEvaluationError(error)) }
  }
}

interface SandboxExpression {
  readonly expression: jsonata.Expression
  /** JSONata reads these at each evaluation. */
  readonly limits: JsonataLimits
}

class JsonataLimits {
  readonly stack = STACK_MAX
  readonly sequence = SEQUENCE_MAX
  /** Of the request that is evaluated. */
  current: TimeLimit | undefined

  /** JSONata reads it at each step. Zero is no limit. */
  get timeout(): number {
    this.current?.check()
    return 0
  }
}

/** LRU cache: in order of last use, oldest first. */
const cache = new Map<string, SandboxExpression>()
let cachedCharacters = 0

function compileCached(text: string): SandboxExpression {
  const known = cache.get(text)
  if (known) {
    cache.delete(text)
    cache.set(text, known)
    return known
  }
  const limits = new JsonataLimits()
  const fresh = { expression: jsonata(text, limits), limits }
  registerFunctions(fresh.expression)
  cache.set(text, fresh)
  cachedCharacters += text.length
  for (const [oldest] of cache) {
    if (cachedCharacters <= CACHED_CHARACTERS_MAX) break
    cache.delete(oldest)
    cachedCharacters -= oldest.length
  }
  return fresh
}

const FAILED: EvaluationError = { code: 'FAILED', message: 'The evaluation failed' }

/** JSONata throws plain objects with code, message, position and the value at fault, which the message quotes. */
function toEvaluationError(error: unknown): EvaluationError {
  if (error instanceof RangeError) return { code: 'TOO_LARGE', message: 'A value became too large or too deep' }
  // Without a code it is an internal error of JSONata, whose message means nothing to a user.
  if (typeof error !== 'object' || error === null || !('code' in error)) return FAILED
  const code = typeof error.code === 'string' ? error.code : FAILED.code
  const message = 'message' in error && typeof error.message === 'string' ? error.message : FAILED.message
  return {
    code,
    message: (WITHOUT_VALUES.has(code) ? message : withoutValues(message, error)).slice(0, MESSAGE_LENGTH_MAX),
    ...('position' in error && typeof error.position === 'number' && { position: error.position }),
  }
}

/**
 * Messages that quote no value of the input: the author's own (`$error`, `$assert`), limits, and mismatched signatures,
 * which name the argument by number.
 */
const WITHOUT_VALUES: ReadonlySet<string> = new Set([
  'D3137',
  'D3141',
  'D1011',
  'D1012',
  'D2014',
  'D2015',
  'T0410',
  'T0411',
  'T0412',
])

/** Messages appear in logs and responses: a quoted value may be a customer's secret. */
function withoutValues(message: string, error: object): string {
  let cleaned = message
  for (const key of ['value', 'value2'] as const) {
    const quoted = key in error ? JSON.stringify(Reflect.get(error, key)) : undefined
    if (quoted !== undefined) cleaned = cleaned.replaceAll(quoted, kindOf(Reflect.get(error, key)))
  }
  return cleaned
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? '(an array)' : `(${typeof value})`
}

/** Deepest nesting of a result. */
const DEPTH_MAX = 256

/** The result cannot leave the sandbox. */
class ResultError extends Error {
  readonly code: 'RESULT_TOO_LARGE' | 'RESULT_TOO_DEEP' | 'D1001'

  constructor(code: ResultError['code'], message: string) {
    super(message)
    this.name = 'ResultError'
    this.code = code
  }
}

/**
 * The result as JSON, `undefined` for no result.
 *
 * The size is measured before anything is written: a small graph whose parts are shared many times would otherwise expand
 * to gigabytes. Functions are left out of objects and become null in arrays, as in JSON.
 *
 * @throws ResultError
 */
function serialise(value: unknown, bytesMax: number): string | undefined {
  if (value === undefined || isFunction(value)) return undefined
  const measure: Measure = { left: bytesMax, hasFunctions: false }
  walk(measure, value, 0)
  const json = measure.hasFunctions ? JSON.stringify(value, withoutFunctions) : JSON.stringify(value)
  if (Buffer.byteLength(json) > bytesMax) throw tooLarge()
  return json
}

interface Measure {
  /** Characters the result may still grow by; never more than its bytes. */
  left: number
  hasFunctions: boolean
}

function walk(measure: Measure, value: unknown, depth: number): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new ResultError('D1001', 'The result contains a number that is out of range')
  }
  countCharacters(measure, typeof value === 'string' ? value.length + 2 : 1)
  if (isFunction(value)) measure.hasFunctions = true
  else if (typeof value === 'object' && value !== null) walkMembers(measure, value, depth)
}

function walkMembers(measure: Measure, value: object, depth: number): void {
  if (depth === DEPTH_MAX) {
    throw new ResultError('RESULT_TOO_DEEP', `The result is nested deeper than ${DEPTH_MAX} levels`)
  }
  if (Array.isArray(value)) {
    for (const item of value) walk(measure, item, depth + 1)
    return
  }
  for (const [key, item] of Object.entries(value)) {
    countCharacters(measure, key.length + 4)
    walk(measure, item, depth + 1)
  }
}

function countCharacters(measure: Measure, characters: number): void {
  measure.left -= characters
  if (measure.left < 0) throw tooLarge()
}

function tooLarge(): ResultError {
  return new ResultError('RESULT_TOO_LARGE', 'The result is too large')
}

function withoutFunctions(_key: string, value: unknown): unknown {
  return isFunction(value) ? undefined : value
}

/** JSONata's own functions are objects with a special key; data with the same key has no implementation. */
function isFunction(value: unknown): boolean {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null) return false
  if ('_jsonata_lambda' in value) return 'environment' in value && 'body' in value
  return '_jsonata_function' in value && 'implementation' in value && typeof value.implementation === 'function'
}
