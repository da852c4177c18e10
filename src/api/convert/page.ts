import type { JsonObject } from '../../base/index.ts'
import { decodeIdToken, type Page, pageOf, pageSizeOf } from '../../storage/index.ts'

/** The part that all list requests share. */
export interface ListRequest {
  readonly pageSize: number
  readonly pageToken: string
}

/** Which rows to read: at most `limit` of those that come after the row `before`. */
export interface PageRange {
  readonly before: string | undefined
  readonly limit: number
}

/**
 * One page of a list ordered by id, newest first.
 *
 * @param query everything that decides which rows are listed, the list's name included; a page token is good for it alone
 * @param read reads the rows of a range; it is asked for one more than fits, to see whether there is a next page
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function pageById<Item extends { readonly id: string }>(
  query: JsonObject,
  request: ListRequest,
  read: (range: PageRange) => Promise<readonly Item[]>,
): Promise<Page<Item>> {
  const size = pageSizeOf(request)
  const before = decodeIdToken(query, request.pageToken)
  return pageOf(query, await read({ before, limit: size + 1 }), size, ({ id }) => [id])
}
