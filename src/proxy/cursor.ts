import { Failure, isJsonObject, type JsonObject, parseJson } from '../base/index.ts'
import { type ListingState, type Pagination, parseListingState } from '../formats/index.ts'

/** Longest cursor that is read; states of every format stay far below. */
const CURSOR_LENGTH_MAX = 16_384

/** A listing's state as one opaque text for callers. It holds no credential. */
export function encodeCursor(state: ListingState): string {
  return Buffer.from(JSON.stringify(state)).toString('base64url')
}

/** The state behind a caller's cursor. @throws Failure PAGE_TOKEN_INVALID */
export function decodeCursor(pagination: Pagination, cursor: string): ListingState {
  const state =
    cursor.length > CURSOR_LENGTH_MAX ? undefined : parseCursorJson(Buffer.from(cursor, 'base64url').toString())
  if (state === undefined) throw new Failure('PAGE_TOKEN_INVALID', 'the cursor is not one that this service gave out')
  return parseListingState(pagination, state)
}

function parseCursorJson(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
