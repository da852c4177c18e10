import { Failure, type Sealer } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { type ListingState, parseListingState } from '../formats/pagination/listing.ts'
import type { Pagination } from '../formats/pagination/paginator.ts'
import type { CallContext } from './call-context.ts'

/** Longest cursor that is read; states of every format stay far below. */
const CURSOR_LENGTH_MAX = 16_384
const PURPOSE = 'proxy_cursor'

/**
 * What decides which records a call lists, in which order and for whom: a cursor is valid for the same list alone. The page size is
 * no part of it.
 */
export function listOf({ access, request }: CallContext): JsonObject {
  const { target, id = null, query = {}, args = {}, body = null, page } = request
  const list = page?.list ?? { id, query, args, body }
  return { account: access.id, target: { ...target }, list, holder: page?.holder ?? null }
}

/**
 * A listing's state as one sealed text for callers: it names the address of the next page, which is read with the account's
 * credentials. @param list see `listOf`
 */
export function encodeCursor(sealer: Sealer, list: JsonObject, state: ListingState): string {
  return sealer.seal(PURPOSE, list, JSON.stringify(state))
}

/** The state behind a caller's cursor. @throws Failure PAGE_TOKEN_INVALID, also for a cursor of another list */
export function decodeCursor(sealer: Sealer, list: JsonObject, pagination: Pagination, cursor: string): ListingState {
  const text = cursor.length > CURSOR_LENGTH_MAX ? undefined : sealer.open(PURPOSE, list, cursor)
  const state = text === undefined ? undefined : parseJson(text)
  if (!isJsonObject(state)) throw cursorInvalid()
  return parseListingState(pagination, state)
}

function cursorInvalid(): Failure {
  const message =
    'the cursor is not one that this list returned for this account with these parameters: repeat them with it, or start ' +
    'again without it'
  return new Failure('PAGE_TOKEN_INVALID', message, {
    violations: [{ field: 'next_cursor', description: 'does not belong to this list', rule: 'page_token.invalid' }],
  })
}
