import { Failure, type Json, type JsonObject } from '../../base/index.ts'

/** A whole number of a position. @throws Failure PAGE_TOKEN_INVALID when a stored or given position does not hold it */
export function integerAt(position: JsonObject, key: string): number {
  const value = position[key]
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw invalidPosition()
  return value
}

/** A text of a position. @throws Failure PAGE_TOKEN_INVALID */
export function textAt(position: JsonObject, key: string): string {
  const value = position[key]
  if (typeof value !== 'string') throw invalidPosition()
  return value
}

/** The refusal of a position that does not belong to this definition, for example because the definition changed. */
export function invalidPosition(): Failure {
  return new Failure('PAGE_TOKEN_INVALID', 'the cursor does not belong to this listing: start it again without one')
}

/** Tells whether a token ends a listing: null, absent or empty text. `0`, `"0"` and `false` are values. */
export function isAbsentToken(value: Json | undefined): value is null | undefined | '' {
  return value === undefined || value === null || value === ''
}
