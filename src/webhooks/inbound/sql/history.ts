import { lowestIdAt } from '../../../foundation/base/index.ts'
import { type Db, execute, jsonb, query, queryForValues, type Tx } from '../../../foundation/database/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { InboundEventRecord, InboundItemRecord, InboundState } from '../inbound-event.ts'
import { INBOUND_EVENT_COLUMNS } from './inbound-event.ts'

/** Which events to list; what is undefined does not restrict. */
export interface InboundFilter {
  readonly state?: InboundState | undefined
  /** Of the address. */
  readonly sourceId?: string | undefined
  /** Of the address, or of an item that was routed. */
  readonly integratedAccountId?: string | undefined
  /** Of an item that found no account. */
  readonly lookupValue?: string | undefined
  /** Received at or after this moment. */
  readonly since?: Date | undefined
  /** Received before this moment. */
  readonly until?: Date | undefined
}

/** An event of a list, before it is read whole. */
export interface InboundHead {
  readonly id: string
  /** Of its texts without a limit of their own. */
  readonly bytes: number
}

const HEAD = `e.id, octet_length(e.path) + octet_length(e.query) + coalesce(octet_length(e.error::text), 0)
  + coalesce(octet_length(e.dedupe_key), 0) as bytes`

/**
 * At most `limit` events of the environment below the id `before`, newest first. Each filter has an index that ends with the id,
 * so that a page is read in order: inbound_event_of_state (every state but `processed`, which most have),
 * inbound_event_of_source, inbound_item_of_account, inbound_item_unrouted, and the primary key for times and for no filter. The
 * text names only the filters given, so that the planner sees which.
 */
export async function listInboundHeads(
  tx: Db,
  environmentId: string,
  filter: InboundFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly InboundHead[]> {
  const { since, until } = filter
  return await queryForValues(tx, listSql(filter, page.before !== undefined), {
    environmentId,
    state: filter.state ?? null,
    sourceId: filter.sourceId ?? null,
    accountId: filter.integratedAccountId ?? null,
    lookupValue: filter.lookupValue ?? null,
    since: since === undefined ? null : lowestIdAt(since),
    until: until === undefined ? null : lowestIdAt(until),
    before: page.before ?? null,
    limit: page.limit,
  })
}

const OF_ACCOUNT = 'i.integrated_account_id = :accountId::uuid'
const UNROUTED = `i.state = 'unrouted' and i.lookup_value = :lookupValue`

function listSql(filter: InboundFilter, hasBefore: boolean): string {
  const { state, sourceId, integratedAccountId, lookupValue, since, until } = filter
  const conditions = [
    'e.environment_id = :environmentId',
    state !== undefined && 'e.state = :state',
    state !== undefined && state !== 'processed' && `e.state <> 'processed'`,
    sourceId !== undefined && 'e.source_id = :sourceId',
    since !== undefined && 'e.id >= :since::uuid',
    until !== undefined && 'e.id < :until::uuid',
    hasBefore && 'e.id < :before::uuid',
  ].filter((condition) => condition !== false)
  const ofEvents = (also: readonly string[] = []) =>
    `select ${HEAD} from inbound_event e where ${[...conditions, ...also].join(' and ')} order by e.id desc limit :limit`
  const ofItems = (item: string, also: readonly string[] = []) =>
    `select distinct on (e.id) ${HEAD} from inbound_item i
     join inbound_event e on e.environment_id = i.environment_id and e.id = i.inbound_event_id
     where i.environment_id = :environmentId and ${item}${hasBefore ? ' and i.inbound_event_id < :before::uuid' : ''}
       and ${[...conditions, ...also].join(' and ')} order by e.id desc limit :limit`
  if (lookupValue !== undefined)
    return ofItems(
      UNROUTED,
      integratedAccountId === undefined ? [] : [`(e.source_id = :accountId or ${hasItem(OF_ACCOUNT)})`],
    )
  if (integratedAccountId === undefined) return ofEvents()
  return `(${ofEvents(['e.source_id = :accountId'])}) union (${ofItems(OF_ACCOUNT)}) order by id desc limit :limit`
}

function hasItem(condition: string): string {
  return `exists (select from inbound_item i where i.environment_id = e.environment_id and i.inbound_event_id = e.id and ${condition})`
}

/** The events of a page, newest first. Uses the primary keys of the partitions of the ids. */
export async function findInboundEvents(
  tx: Db,
  environmentId: string,
  ids: readonly string[],
): Promise<readonly InboundEventRecord[]> {
  return await tx('inbound_event')
    .where({ environment_id: environmentId })
    .whereIn('id', [...ids])
    .orderBy('id', 'desc')
    .select(tx.raw(INBOUND_EVENT_COLUMNS))
}

/** Which of the events have their content. Uses the primary keys of the partitions of the ids. */
export async function findIdsWithContent(
  tx: Db,
  environmentId: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  const found = await query<{ readonly id: string }>(
    tx,
    'select id from inbound_content where environment_id = :environmentId and id = any(:ids::uuid[])',
    { environmentId, ids },
  )
  return found.map(({ id }) => id)
}

/** The newest `limit` items of an event, in their order. Uses the primary key of the partition of the event's id. */
export async function listInboundItems(
  tx: Db,
  environmentId: string,
  eventId: string,
  limit: number,
): Promise<readonly InboundItemRecord[]> {
  const newest = await query<InboundItemRecord>(
    tx,
    `select index, state, integrated_account_id, lookup_value, event_id, resource, record_id, detail
     from inbound_item where environment_id = :environmentId and inbound_event_id = :eventId
     order by index desc limit :limit`,
    { environmentId, eventId, limit },
  )
  return newest.toReversed()
}

/**
 * Deletes the content of an event; one that waits is taken from the queue and fails with `error`, and the process that works on
 * one is asked to stop. False when there is no event of that id. Uses primary keys.
 */
export async function expungeContent(tx: Tx, environmentId: string, id: string, error: JsonObject): Promise<boolean> {
  const expunged = await execute(
    tx,
    `with content as (delete from inbound_content where environment_id = :environmentId and id = :id),
     waiting as (delete from inbound_queue where event_id = :id and environment_id = :environmentId returning event_id)
     update inbound_event e set query = '',
       state = case when w.event_id is null then e.state else 'failed' end,
       error = case when w.event_id is null then e.error else :error::jsonb end,
       processed_at = case when w.event_id is null then e.processed_at else now() end
     from (select) one left join waiting w on true
     where e.environment_id = :environmentId and e.id = :id`,
    { environmentId, id, error: jsonb(error) },
  )
  if (expunged > 0) await stopProcessing(tx, environmentId, id)
  return expunged > 0
}

/** Asks the process that has read the content to store nothing of it. Waits for one that is storing. Uses the primary key. */
async function stopProcessing(tx: Db, environmentId: string, id: string): Promise<void> {
  const sql = `update inbound_lease set stop_requested_at = coalesce(stop_requested_at, now())
    where event_id = :id and environment_id = :environmentId`
  await execute(tx, sql, { environmentId, id })
}
