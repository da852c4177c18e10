import {
  type Db,
  type ListPage,
  type ListPageRequest,
  listQuery,
  pageByIdWithin,
} from '../../foundation/database/index.ts'
import { type EventFilter, type EventRecord, findEvents, listEventHeads } from './sql.ts'

/** Payloads of one page together; a page has one event at least. */
const PAGE_BYTES_MAX = 256 * 1024

/** One page of events, newest first; it ends early when the payloads are large. @throws Failure PAGE_TOKEN_INVALID */
export async function listEvents(
  tx: Db,
  environmentId: string,
  filter: EventFilter,
  request: ListPageRequest,
): Promise<ListPage<EventRecord>> {
  const query = listQuery('event', environmentId, filter)
  const page = await pageByIdWithin(PAGE_BYTES_MAX, query, request, (range) =>
    listEventHeads(tx, environmentId, filter, range),
  )
  const ids = page.items.map(({ id }) => id)
  return { ...page, items: await findEvents(tx, environmentId, ids) }
}
