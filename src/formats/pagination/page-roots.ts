import type { Json, JsonObject } from '../../base/index.ts'
import type { ListingPage } from './paginator.ts'

/** The names that every expression over a page starts from; what a page has not is `null`. */
export const PAGE_ROOTS = [
  ...(['status', 'headers', 'body', 'records', 'count', 'last_record'] as const),
  ...(['url', 'limit', 'page', 'offset', 'cursor', 'total_seen'] as const),
] as const

/** What the expressions of a pagination config see of a page. @param more of one expression only */
export function pageRoots(page: ListingPage, more: JsonObject = {}): JsonObject {
  const roots: Record<(typeof PAGE_ROOTS)[number], Json> = {
    status: page.status,
    headers: page.headers,
    body: page.body,
    records: page.records,
    count: page.received.length,
    last_record: page.records.at(-1) ?? null,
    url: page.url,
    limit: page.limit ?? null,
    page: page.number,
    offset: page.values.offset ?? null,
    cursor: page.values.cursor ?? null,
    total_seen: page.totalSeen,
  }
  return { ...roots, ...more }
}
