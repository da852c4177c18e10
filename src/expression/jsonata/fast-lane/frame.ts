import type { Json, JsonObject } from '../../../base/index.ts'

/** What an expression works on: JSON, or nothing. */
export type Value = Json | undefined

/** One compiled node. */
export type Evaluate = (frame: Frame) => Value

/** One evaluation. */
export interface Frame {
  readonly roots: JsonObject
  /** What names are looked up in: the roots, or the element that an object is being made of. */
  context: Value
  /** How many elements are gone through where this is: what does not depend on the element is repeated so often. */
  copies: number
  /** Values of variables by name. */
  readonly bindings: JsonObject
  /** Characters and elements that may still be looked at; every operation that is not constant pays for its operand. */
  fuel: number
}

/** Enough for a look at every character of an ordinary answer; spent whole, it takes a few milliseconds. */
export const FUEL = 262_144

/** Asking whether an object is empty makes the engine list its keys, whose number is not known before. */
export const OBJECT_CHECK_FUEL = FUEL / 16

/** A result may point at parts of the input this many times; each copy would be written out in full. */
export const SHARED_CONTAINER_FUEL = FUEL / 8

/** Longest text that is put together here. */
export const TEXT_LENGTH_MAX = 65_536

/** Thrown where this lane does not vouch for the result; allocated once, as there is nobody to read its stack. */
const LEAVE = new Error('the expression left the fast lane')

/**
 * Gives the evaluation (or, while compiling, the expression) to the sandbox.
 *
 * Errors go that way too: the sandbox runs JSONata itself, so codes, messages and positions are the real ones.
 */
export function leave(): never {
  throw LEAVE
}

/** Whether something was thrown by `leave`. */
export function hasLeft(error: unknown): boolean {
  return error === LEAVE
}

/** Pays for an operation; leaves when the fuel is gone. */
export function spend(frame: Frame, cost: number): void {
  frame.fuel -= cost
  if (frame.fuel < 0) leave()
}
