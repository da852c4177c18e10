import type { Json, JsonObject } from '../../../base/index.ts'

/** What an expression works on: JSON, or nothing. */
export type Value = Json | undefined

/** One compiled node. */
export type CompiledNode = (frame: EvaluationFrame) => Value

/** One evaluation. */
export interface EvaluationFrame {
  readonly roots: JsonObject
  /** What names are looked up in: the roots, or the element that an object is being made of. */
  context: Value
  /** How many elements are gone through where this is: what does not depend on the element is repeated so often. */
  copies: number
  /** Values of variables by name. */
  readonly bindings: JsonObject
  /** Characters and elements that may still be looked at; every operation that is not constant pays for its operand. */
  gas: number
}

/** Enough for a look at every character of an ordinary answer; spent whole, it takes a few milliseconds. */
export const GAS_LIMIT = 262_144

/** Asking whether an object is empty makes the engine list its keys, whose number is not known before. */
export const OBJECT_CHECK_GAS = GAS_LIMIT / 16

/** A result may point at parts of the input this many times; each copy would be written out in full. */
export const SHARED_CONTAINER_GAS = GAS_LIMIT / 8

/** Longest text that is put together here. */
export const TEXT_LENGTH_MAX = 65_536

/** Thrown where this lane does not vouch for the result; allocated once, as there is nobody to read its stack. */
const BAIL_OUT_ERROR = new Error('the expression left the fast lane')

/**
 * Gives the evaluation (or, while compiling, the expression) to the sandbox.
 *
 * Errors go that way too: the sandbox runs JSONata itself, so codes, messages and positions are the real ones.
 */
export function bailOut(): never {
  throw BAIL_OUT_ERROR
}

/** Whether something was thrown by `leave`. */
export function isBailOut(error: unknown): boolean {
  return error === BAIL_OUT_ERROR
}

/** Pays for an operation; leaves when the fuel is gone. */
export function charge(frame: EvaluationFrame, cost: number): void {
  frame.gas -= cost
  if (frame.gas < 0) bailOut()
}
