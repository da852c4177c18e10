import jsonata from 'jsonata'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

/** A result as JSON, or the code of the error, so that two evaluations can be compared. */
export async function outcomeOf(promise: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await promise) ?? 'nothing'
  } catch (error) {
    if (error instanceof Failure) return `error ${error.metadata.code}`
    return `error ${typeof error === 'object' && error !== null && 'code' in error ? error.code : 'FAILED'}`
  }
}

/** JSONata itself, with a parse error as a rejection, and a number that JSON cannot hold as an error. */
export async function evaluateWithJsonata(text: string, input: JsonObject, bindings: JsonObject): Promise<unknown> {
  const value = await jsonata(text).evaluate(structuredClone(input), structuredClone(bindings))
  requireFinite(value)
  return value
}

function requireFinite(value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw Object.assign(new Error('not finite'), { code: 'D1001' })
  }
  if (typeof value === 'object' && value !== null && !('environment' in value))
    Object.values(value).forEach(requireFinite)
}
