import { type Db, execute, jsonb, OWNED, query, rowSet } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { HeaderList, InboundContent, InboundEventRecord, InboundState } from '../inbound-event.ts'

/** An event to be processed, with what was sent; `content` is null when it was expunged. */
export interface StoredRequest {
  readonly event: InboundEventRecord
  readonly content: InboundContent | null
}

type StoredRequestRow = InboundEventRecord & {
  readonly headers: HeaderList | null
  readonly body: Buffer | null
  readonly payload: InboundContent['payload']
}

/** Requests by id, in one statement. Uses the primary keys of the partitions of the ids. */
export async function findStoredRequests(
  tx: Db,
  refs: readonly { readonly environmentId: string; readonly id: string }[],
): Promise<ReadonlyMap<string, StoredRequest>> {
  const rows = await query<StoredRequestRow>(
    tx,
    `select e.environment_id, e.id, e.source_kind, e.source_id, e.environment_integration_id, e.integrated_account_id,
       e.method, e.path, e.query, e.remote_address, e.body_bytes, e.state, e.signature, e.dedupe_key, e.duplicates,
       e.received_at, e.provider_time, e.processed_at, e.error, e.trace, c.headers, c.body, c.payload
     from ${OWNED.rows}
     join inbound_event e on e.environment_id = v.environment_id and e.id = v.id
     left join inbound_content c on c.environment_id = v.environment_id and c.id = v.id`,
    OWNED.of(refs),
  )
  return new Map(
    rows.map(({ headers, body, payload, ...event }) => [
      event.id,
      { event, content: headers === null || body === null ? null : { headers, body, payload } },
    ]),
  )
}

/** What is written to an event when an attempt to process it has ended. */
export interface ProcessedEvent {
  readonly environmentId: string
  readonly id: string
  /** `received`: it is tried again. */
  readonly state: InboundState
  readonly error: JsonObject | null
  /** Null: it stays as it is. */
  readonly trace: JsonObject | null
}

const PROCESSED = rowSet('environment_id uuid, id uuid, state text, error jsonb, trace jsonb')

/** Writes how attempts have ended, in one statement. Uses the primary keys of the partitions of the ids. */
export async function updateProcessedEvents(tx: Db, events: readonly ProcessedEvent[]): Promise<void> {
  await execute(
    tx,
    `update inbound_event e set state = v.state, error = v.error, trace = coalesce(v.trace, e.trace),
       processed_at = case when v.state <> 'received' then now() end
     from ${PROCESSED.rows}
     where e.environment_id = v.environment_id and e.id = v.id`,
    PROCESSED.of(events),
  )
}

/** A line of what a request led to. */
export type NewItem = {
  readonly environment_id: string
  readonly inbound_event_id: string
  readonly index: number
  readonly state: 'routed' | 'unrouted' | 'hint' | 'ignored'
  readonly is_replay: boolean
  readonly integrated_account_id: string | null
  readonly lookup_value: string | null
  readonly event_id: string | null
  readonly resource: string | null
  readonly record_id: string | null
  readonly detail: string | null
}

/** Inserts the lines. The partition follows from the time in each event's id. */
export async function insertItems(tx: Db, items: readonly NewItem[]): Promise<void> {
  await execute(
    tx,
    `insert into inbound_item (environment_id, inbound_event_id, index, state, is_replay, integrated_account_id, lookup_value,
       event_id, resource, record_id, detail)
     select environment_id, inbound_event_id, index, state, is_replay, integrated_account_id, lookup_value, event_id,
       resource, record_id, detail
     from jsonb_populate_recordset(null::inbound_item, :items::jsonb)`,
    { items: jsonb(items) },
  )
}

/** The index of the next line of events that were processed before, by id. Uses the primary keys of the partitions of the ids. */
export async function findNextIndexes(
  tx: Db,
  refs: readonly { readonly environmentId: string; readonly id: string }[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ readonly id: string; readonly next: number }>(
    tx,
    `select v.id, coalesce((select max(i.index) + 1 from inbound_item i
       where i.environment_id = v.environment_id and i.inbound_event_id = v.id), 0) as next
     from ${OWNED.rows}`,
    OWNED.of(refs),
  )
  return new Map(rows.map(({ id, next }) => [id, next]))
}

/** Unrouted lines of events that are processed again: what finds no account still is in the list once more. */
export async function closeUnrouted(
  tx: Db,
  refs: readonly { readonly environmentId: string; readonly id: string }[],
): Promise<void> {
  await execute(
    tx,
    `update inbound_item i set state = 'ignored', detail = 'the request was processed again'
     from ${OWNED.rows}
     where i.environment_id = v.environment_id and i.inbound_event_id = v.id and i.state = 'unrouted'`,
    OWNED.of(refs),
  )
}
