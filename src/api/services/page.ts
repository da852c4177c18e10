import type { JsonObject } from '../../base/index.ts'
import { decodeIdPageToken, type ListPage, readPageSize, toPage } from '../../database/index.ts'

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
 * What decides which rows a list shows; a page token is good for it alone.
 *
 * @param ownerId the environment, or the team of a list of what the team owns
 * @param filter what is undefined does not restrict
 */
export function queryOf(
  list: string,
  ownerId: string,
  filter: { readonly [name: string]: string | boolean | undefined } = {},
): JsonObject {
  const given = Object.entries(filter).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return { list, ownerId, ...Object.fromEntries(given) }
}

/**
 * One page of a list ordered by id, newest first.
 *
 * @param query see `queryOf`
 * @param read reads the rows of a range; it is asked for one more than fits, to see whether there is a next page
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function pageById<Item extends { readonly id: string }>(
  query: JsonObject,
  request: ListRequest,
  read: (range: PageRange) => Promise<readonly Item[]>,
): Promise<ListPage<Item>> {
  const size = readPageSize(request)
  const before = decodeIdPageToken(query, request.pageToken)
  return toPage(query, await read({ before, limit: size + 1 }), size, ({ id }) => [id])
}
