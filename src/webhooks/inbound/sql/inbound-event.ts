import { DAY_MS, lowestIdAt } from '../../../foundation/base/index.ts'
import { type DayTable, type Db, queryOne } from '../../../foundation/database/index.ts'
import { deleteFiguresOfDay } from '../../../platform/figures/index.ts'
import type { HeaderList, InboundContent, InboundEventRecord } from '../inbound-event.ts'

/** Events, by the day in the id. A day with events that wait or are processed is kept. */
const INBOUND_EVENT_DAYS: DayTable = {
  name: 'inbound_event',
  column: 'id',
  lowest: lowestIdAt,
  storage: 'with (fillfactor = 80)',
  isInUse: hasUnprocessedEvents,
  unfinished: `state = 'received'`,
  onDrop: (tx, day) => deleteFiguresOfDay(tx, 'inbound_event', day),
}

/** What the items of events led to, by the day of the event. */
const INBOUND_ITEM_DAYS: DayTable = { name: 'inbound_item', column: 'inbound_event_id', lowest: lowestIdAt }

/** Headers, bodies and payloads, by the day in the id. */
export const INBOUND_CONTENT_DAYS: DayTable = {
  name: 'inbound_content',
  column: 'id',
  lowest: lowestIdAt,
  isInUse: hasUnprocessedEvents,
}

/** Events and their items, which are kept for as many days. */
export const INBOUND_HISTORY_DAYS: readonly DayTable[] = [INBOUND_ITEM_DAYS, INBOUND_EVENT_DAYS]

async function hasUnprocessedEvents(tx: Db, day: Date): Promise<boolean> {
  const found = await queryOne(
    tx,
    `select from inbound_queue where event_id >= :from::uuid and event_id < :to::uuid
     union all select from inbound_lease where event_id >= :from::uuid and event_id < :to::uuid limit 1`,
    { from: lowestIdAt(day), to: lowestIdAt(new Date(day.getTime() + DAY_MS)) },
  )
  return found !== undefined
}

/** SQL: the columns of an event. */
export const INBOUND_EVENT_COLUMNS = `environment_id, id, source_kind, source_id, environment_integration_id,
  integrated_account_id, method, path, query, remote_address, body_bytes, state, signature, dedupe_key, duplicates,
  received_at, provider_time, processed_at, error, trace`

/** Uses the primary key of the partition of the id. */
export async function findInboundEvent(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<InboundEventRecord | undefined> {
  return await tx('inbound_event').where({ environment_id: environmentId, id }).first(tx.raw(INBOUND_EVENT_COLUMNS))
}

/** What was sent; `undefined` when it was expunged or its day is over. Uses the primary key of the partition of the id. */
export async function findInboundContent(
  tx: Db,
  environmentId: string,
  id: string,
): Promise<InboundContent | undefined> {
  const found = await tx('inbound_content')
    .where({ environment_id: environmentId, id })
    .first<{ readonly headers: HeaderList; readonly body: Buffer; readonly payload: InboundContent['payload'] }>([
      'headers',
      'body',
      'payload',
    ])
  return found
}
