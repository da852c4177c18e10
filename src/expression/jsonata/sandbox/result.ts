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
 * The size is measured before anything is written: a small graph whose parts are shared many times would otherwise unfold
 * to gigabytes. Functions are no results: they vanish from objects and become null in arrays, as in JSON.
 *
 * @throws ResultError
 */
export function serialise(value: unknown, bytesMax: number): string | undefined {
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

/** JSONata's own functions are objects with a mark; data with the same mark has no implementation. */
function isFunction(value: unknown): boolean {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null) return false
  if ('_jsonata_lambda' in value) return 'environment' in value && 'body' in value
  return '_jsonata_function' in value && 'implementation' in value && typeof value.implementation === 'function'
}
