import { type Db, query } from '../../../foundation/database/index.ts'
import { insertWaitingSql } from '../../../foundation/queue/index.ts'
import type { InboundState } from '../inbound-event.ts'
import { INBOUND_QUEUE, INBOUND_QUEUE_GROUPS } from './queue.ts'

/** Which events are to be processed again; null does not restrict. */
export interface ReplayFilter {
  readonly sourceId: string | null
  readonly integratedAccountId: string | null
  readonly states: readonly InboundState[]
  /** Only events with an item that found no account for this value. */
  readonly lookupValue: string | null
  /** Received from this moment on. */
  readonly after: Date | null
  /** Received before this moment. */
  readonly before: Date
}

/** What became of an event that is to be processed again. */
export interface RequeuedEvent {
  readonly id: string
  readonly state: InboundState
  readonly isQueued: boolean
  /** It waits or is processed already. */
  readonly isWaiting: boolean
  readonly hasContent: boolean
}

/**
 * Puts events into the queue again and makes them `received`: those in one of the states that have their content and do not
 * wait already. Needs a transaction. Uses primary keys.
 */
export async function requeueEvents(
  tx: Db,
  environmentId: string,
  ids: readonly string[],
  states: readonly InboundState[],
): Promise<readonly RequeuedEvent[]> {
  // Locked by a statement of its own, in the order of their ids: the next one sees what another replay has just queued.
  await query(
    tx,
    `select from inbound_event where environment_id = :environmentId and id = any(:ids::uuid[]) order by id for update`,
    { environmentId, ids },
  )
  return await query(
    tx,
    `with found as materialized (
       select e.environment_id, e.id, e.source_id, e.source_kind, e.state,
         exists (select from inbound_content c where c.environment_id = e.environment_id and c.id = e.id) as has_content,
         exists (select from inbound_queue q where q.event_id = e.id)
           or exists (select from inbound_lease l where l.event_id = e.id) as is_waiting
       from inbound_event e where e.environment_id = :environmentId and e.id = any(:ids::uuid[])
     ),
     queued as materialized (
       select id as event_id, source_id, environment_id, '${INBOUND_QUEUE_GROUPS.replay}' as queue_group, source_kind,
         true as is_replay, null::timestamptz as available_at, 0 as attempt
       from found where state = any(:states::text[]) and has_content and not is_waiting
     ),
     waiting as (${insertWaitingSql(INBOUND_QUEUE, 'queued')}),
     again as (
       update inbound_event e set state = 'received', error = null, processed_at = null
       from queued where e.environment_id = queued.environment_id and e.id = queued.event_id
     )
     select id, state, has_content, is_waiting, exists (select from queued where event_id = id) as is_queued
     from found`,
    { environmentId, ids, states },
  )
}

/** The smallest UUIDv7 of a moment, as SQL: its first 48 bits are milliseconds since 1970. */
const LOWEST_ID = (moment: string) =>
  `(lpad(to_hex((extract(epoch from ${moment}::timestamptz) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`

/**
 * Ids of at most `limit` events of an environment behind the id `after`, oldest first. Uses the primary key, or the index of
 * the source, of the account, or of unrouted items; the text names only the filters given, so that the planner sees which.
 */
export async function findReplayable(
  tx: Db,
  environmentId: string,
  filter: ReplayFilter,
  page: { readonly after: string | null; readonly limit: number },
): Promise<readonly string[]> {
  const { sourceId, integratedAccountId, lookupValue, states } = filter
  const conditions = [
    'e.environment_id = :environmentId and e.state = any(:states::text[])',
    `e.id < ${LOWEST_ID(':before')}`,
    filter.after !== null && `e.id >= ${LOWEST_ID(':from')}`,
    page.after !== null && 'e.id > :after::uuid',
    sourceId !== null && 'e.source_id = :sourceId',
    integratedAccountId !== null &&
      `(e.integrated_account_id = :integratedAccountId or exists (select from inbound_item i
         where i.environment_id = e.environment_id and i.inbound_event_id = e.id and i.integrated_account_id = :integratedAccountId))`,
    lookupValue !== null &&
      `e.id in (select i.inbound_event_id from inbound_item i
         where i.environment_id = :environmentId and i.state = 'unrouted' and i.lookup_value = :lookupValue)`,
  ]
  const rows = await query<{ readonly id: string }>(
    tx,
    `select e.id from inbound_event e where ${conditions.filter(Boolean).join(' and ')} order by e.id limit :limit`,
    {
      environmentId,
      states,
      before: filter.before.toISOString(),
      from: filter.after?.toISOString() ?? null,
      after: page.after,
      sourceId,
      integratedAccountId,
      lookupValue,
      limit: page.limit,
    },
  )
  return rows.map(({ id }) => id)
}
