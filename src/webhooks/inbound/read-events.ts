import { notFound } from '../../foundation/base/index.ts'
import {
  type Db,
  type ListPage,
  type ListPageRequest,
  listQuery,
  pageByIdWithin,
  type Tx,
} from '../../foundation/database/index.ts'
import { CONTENT_EXPUNGED } from './effects.ts'
import type { InboundContent, InboundEventRecord, InboundItemRecord } from './inbound-event.ts'
import {
  expungeContent,
  findIdsWithContent,
  findInboundEvents,
  type InboundFilter,
  listInboundHeads,
  listInboundItems,
} from './sql/history.ts'
import { findInboundContent, findInboundEvent } from './sql/inbound-event.ts'

/** An event of a list. */
export interface InboundEventSummary extends InboundEventRecord {
  /** Whether headers and body are still there. */
  readonly hasContent: boolean
}

/** An event with what was sent and what it led to. */
export interface InboundEventDetail extends InboundEventSummary {
  /** Absent: it was expunged, or its days are over. */
  readonly content: InboundContent | undefined
  /** In their order; the newest ITEMS_MAX. */
  readonly items: readonly InboundItemRecord[]
}

const ITEMS_MAX = 1_000
/** Texts of one page together; a page has one event at least. */
const PAGE_BYTES_MAX = 256 * 1024

/** A page of events, newest first; it ends early when their texts are large. @throws Failure PAGE_TOKEN_INVALID */
export async function listInboundEvents(
  tx: Db,
  environmentId: string,
  filter: InboundFilter,
  request: ListPageRequest,
): Promise<ListPage<InboundEventSummary>> {
  const query = listQuery('inbound_event', environmentId, filter)
  const page = await pageByIdWithin(PAGE_BYTES_MAX, query, request, (range) =>
    listInboundHeads(tx, environmentId, filter, range),
  )
  const ids = page.items.map(({ id }) => id)
  const withContent = new Set(await findIdsWithContent(tx, environmentId, ids))
  const events = await findInboundEvents(tx, environmentId, ids)
  return { ...page, items: events.map((event) => ({ ...event, hasContent: withContent.has(event.id) })) }
}

/** An event with what was sent and what it led to. @throws Failure RESOURCE_NOT_FOUND */
export async function getInboundEvent(tx: Db, environmentId: string, id: string): Promise<InboundEventDetail> {
  const event = await findInboundEvent(tx, environmentId, id)
  if (event === undefined) throw notFound('inbound_event', id)
  const content = await findInboundContent(tx, environmentId, id)
  const items = await listInboundItems(tx, environmentId, id, ITEMS_MAX)
  return { ...event, hasContent: content !== undefined, content, items }
}

/**
 * Removes what was sent for good: headers, query, body and payload. The record of it and of what it led to stays; one that waits
 * fails, and so does one that is being processed, of which nothing is stored any more. Needs a transaction. Idempotent.
 *
 * @throws Failure RESOURCE_NOT_FOUND
 */
export async function expungeInboundEvent(tx: Tx, environmentId: string, id: string): Promise<InboundEventDetail> {
  if (!(await expungeContent(tx, environmentId, id, CONTENT_EXPUNGED))) throw notFound('inbound_event', id)
  return await getInboundEvent(tx, environmentId, id)
}
