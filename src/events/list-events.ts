import type { JsonObject } from '../base/index.ts'
import {
  countFitting,
  decodeIdPageToken,
  type ListPage,
  type ListPageRequest,
  readPageSize,
  type Tx,
  toPage,
} from '../database/index.ts'
import { type EventFilter, type EventRecord, findEvents, listEventHeads } from './sql.ts'

/** Payloads of one page together; a page has one event at least. */
const PAGE_BYTES_MAX = 256 * 1024

/**
 * One page of events, newest first; it ends early when the payloads are large.
 *
 * @param query identity of the list, for which alone its page tokens are valid
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function listEvents(
  tx: Tx,
  environmentId: string,
  filter: EventFilter,
  query: JsonObject,
  request: ListPageRequest,
): Promise<ListPage<EventRecord>> {
  const sizeMax = readPageSize(request)
  const before = decodeIdPageToken(query, request.pageToken)
  const heads = await listEventHeads(tx, environmentId, filter, { before, limit: sizeMax + 1 })
  const page = toPage(query, heads, Math.min(sizeMax, countFitting(heads, PAGE_BYTES_MAX)), ({ id }) => [id])
  const ids = page.items.map(({ id }) => id)
  return { ...page, items: await findEvents(tx, environmentId, ids) }
}
