import { createHash } from 'node:crypto'
import { canonicalJson, Failure, isJsonObject, type JsonObject, parseJson } from '../base/index.ts'
import { type ListingState, type Pagination, parseListingState } from '../formats/index.ts'
import type { CallContext } from './call-context.ts'

/** Longest cursor that is read; states of every format stay far below. */
const CURSOR_LENGTH_MAX = 16_384
/** Bytes of the list's hash in a cursor. It detects mistakes; forging one gains nothing, since pages are read with the caller's own account. */
const LIST_HASH_BYTES = 9

/**
 * What decides which records a call lists, and in which order: a cursor is valid for the same list alone. The page size is no
 * part of it.
 */
export function listOf({ access, request }: CallContext): JsonObject {
  const { target, id = null, query = {}, args = {}, body = null, page } = request
  return { account: access.id, target: { ...target }, list: page?.list ?? { id, query, args, body } }
}

/** A listing's state as one opaque text for callers. It holds no credential. @param list see `listOf` */
export function encodeCursor(list: JsonObject, state: ListingState): string {
  return Buffer.concat([hashOf(list), Buffer.from(JSON.stringify(state))]).toString('base64url')
}

/** The state behind a caller's cursor. @throws Failure PAGE_TOKEN_INVALID, also for a cursor of another list */
export function decodeCursor(list: JsonObject, pagination: Pagination, cursor: string): ListingState {
  const bytes = Buffer.from(cursor.length > CURSOR_LENGTH_MAX ? '' : cursor, 'base64url')
  const isOfList = bytes.subarray(0, LIST_HASH_BYTES).equals(hashOf(list))
  const state = isOfList ? parseState(bytes.subarray(LIST_HASH_BYTES).toString()) : undefined
  if (state === undefined) throw cursorInvalid()
  return parseListingState(pagination, state)
}

function hashOf(list: JsonObject): Buffer {
  return createHash('sha256').update(canonicalJson(list)).digest().subarray(0, LIST_HASH_BYTES)
}

function parseState(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function cursorInvalid(): Failure {
  const message =
    'the cursor is not one that this list returned for this account with these parameters: repeat them with it, or start ' +
    'again without it'
  return new Failure('PAGE_TOKEN_INVALID', message, {
    violations: [{ field: 'next_cursor', description: 'does not belong to this list', rule: 'page_token.invalid' }],
  })
}
