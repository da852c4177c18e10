import jsonata from 'jsonata'
import { registerFunctions } from './functions.ts'
import type { EvaluationError, EvaluationRequest, SandboxResponse } from './protocol.ts'
import { serialise } from './result.ts'

/** Nested evaluations. Generous, because the members of one constructor count as nested: they start together. */
const STACK_MAX = 2_000

/** Elements of one sequence. */
const SEQUENCE_MAX = 100_000

/** Text of the compiled expressions that are kept; a tree takes some hundred bytes per character. */
const CACHED_CHARACTERS_MAX = 64 * 1024

const MESSAGE_LENGTH_MAX = 300

/** Evaluates one request; never throws. */
export async function evaluate(request: EvaluationRequest): Promise<SandboxResponse> {
  const before = process.cpuUsage()
  const result = await evaluateUntimed(request)
  const { user, system } = process.cpuUsage(before)
  return { ...result, cpuMs: Math.round((user + system) / 1_000) }
}

async function evaluateUntimed(request: EvaluationRequest): Promise<Omit<SandboxResponse, 'cpuMs'>> {
  try {
    const { expression, limits } = compileCached(request.text)
    limits.timeout = request.timeoutMs
    const value = await expression.evaluate(request.input, request.bindings)
    const json = serialise(value, request.resultBytesMax)
    return json === undefined ? { kind: 'nothing', payload: '' } : { kind: 'value', payload: json }
  } catch (error) {
    return { kind: 'error', payload: JSON.stringify(toEvaluationError(error)) }
  }
}

interface SandboxExpression {
  readonly expression: jsonata.Expression
  /** JSONata reads these at each evaluation. */
  readonly limits: { timeout: number; readonly stack: number; readonly sequence: number }
}

/** In order of last use, oldest first. */
const cache = new Map<string, SandboxExpression>()
let cachedCharacters = 0

function compileCached(text: string): SandboxExpression {
  const known = cache.get(text)
  if (known) {
    cache.delete(text)
    cache.set(text, known)
    return known
  }
  const limits = { timeout: 0, stack: STACK_MAX, sequence: SEQUENCE_MAX }
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

/** JSONata throws plain objects with code, message, position and the offending value, which the message quotes. */
function toEvaluationError(error: unknown): EvaluationError {
  if (error instanceof RangeError) return { code: 'TOO_LARGE', message: 'A value became too large or too deep' }
  // Without a code it is JSONata that stumbled, in words that mean nothing outside.
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

/** Messages leave this process for logs and answers; a quoted value may be a customer's secret. */
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
