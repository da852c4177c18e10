import type { Timestamp } from '@bufbuild/protobuf/wkt'
import type { JsonObject } from '../../base/index.ts'
import { decodeIdPageToken, type ListPage, readPageSize, toPage } from '../../database/index.ts'
import type { Finding } from '../operation.ts'
import { dateFrom } from './values.convert.ts'

/** The fields that all list requests have. */
export interface ListRequest {
  readonly pageSize: number
  readonly pageToken: string
}

/** A range of time in a request. */
export interface RangeRequest {
  readonly since?: Timestamp | undefined
  readonly until?: Timestamp | undefined
}

/** A finding when a range of time has no moment in it. */
export function checkRange({ since, until }: RangeRequest): readonly Finding[] {
  const [from, to] = [dateFrom(since), dateFrom(until)]
  if (from === undefined || to === undefined || from < to) return []
  return [{ field: 'until', description: 'must be after since', rule: 'until.after_since' }]
}

/** A keyset range: at most `limit` rows with ids below `before`. */
export interface PageRange {
  readonly before: string | undefined
  readonly limit: number
}

/**
 * Identity of a list query: a page token is valid for this query alone.
 *
 * @param ownerId the environment, or the team for a list of its resources
 * @param filter undefined values do not restrict
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
 * @param read reads the rows of a range: one more than the page size, which tells whether there is a next page
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
