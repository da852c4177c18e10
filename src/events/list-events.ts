import type { JsonObject } from '../base/index.ts'
import {
  decodeIdPageToken,
  type ListPage,
  type ListPageRequest,
  readPageSize,
  type Tx,
  toPage,
} from '../database/index.ts'
import { type EventFilter, type EventHead, type EventRecord, findEvents, listEventHeads } from './sql.ts'

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
  const page = toPage(query, heads, Math.min(sizeMax, countFitting(heads)), ({ id }) => [id])
  const ids = page.items.map(({ id }) => id)
  return { ...page, items: await findEvents(tx, environmentId, ids) }
}

/** How many of the first events make a page: all that fit, and at least one. */
function countFitting(heads: readonly EventHead[]): number {
  let bytesLeft = PAGE_BYTES_MAX
  const fitting = heads.findIndex(({ bytes }) => {
    bytesLeft -= bytes
    return bytesLeft < 0
  })
  return fitting === -1 ? heads.length : Math.max(fitting, 1)
}
