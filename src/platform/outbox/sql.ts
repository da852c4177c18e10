import { lowestIdAt } from '../../foundation/base/index.ts'
import {
  type DayTable,
  type Db,
  deleteBatchOfEnvironment,
  execute,
  newestFirst,
  query,
  rowSet,
  type Tx,
} from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { EventType } from './catalog.ts'

/** An event as stored. */
export interface EventRecord {
  /** UUIDv7 of the time at which it was recorded. */
  readonly id: string
  readonly environmentId: string
  /** A name of the event catalog; of an earlier version also one that the catalog no longer has. */
  readonly type: string
  /** Absent or null when the subject has no id. */
  readonly subjectId?: string | null | undefined
  /** The account that it concerns; absent or null when it concerns none. */
  readonly integratedAccountId?: string | null | undefined
  readonly payload: JsonObject
  /** An example that a caller had sent to one webhook: nothing happened. */
  readonly isTest?: boolean | undefined
  readonly createdAt: Date
  /** When its payload was removed; null or absent when it was not. */
  readonly expungedAt?: Date | null | undefined
}

/** Which events to list; what is undefined does not restrict. */
export interface EventFilter {
  /** Names of the catalog; empty: none. */
  readonly types?: readonly string[] | undefined
  readonly subjectId?: string | undefined
  readonly integratedAccountId?: string | undefined
  /** Recorded at or after this moment. */
  readonly since?: Date | undefined
  /** Recorded before this moment. */
  readonly until?: Date | undefined
}

const COLUMNS = 'id, environment_id, type, subject_id, integrated_account_id, payload, is_test, created_at, expunged_at'

/** The table, partitioned by the day in the id, a UUIDv7. */
export const EVENT_DAYS: DayTable = { name: 'event', column: 'id', lowest: lowestIdAt }

/**
 * SQL: whether an active webhook of the environment may ask for the event `e`, whose dispatch decides (`isAskedFor`): the types
 * of a webhook are names and beginnings with `*`, and as LIKE patterns match at least what they ask for. Uses the primary key.
 */
const MAY_BE_ASKED_FOR = `exists (select from webhook w where w.environment_id = e.environment_id and w.is_active
         and w.id is distinct from e.except_webhook_id
         and (w.event_types = '{}' or e.type like any (replace(w.event_types::text, '*', '%')::text[])))`

/**
 * SQL: two members of a `with` that insert events and mark them for dispatch where a webhook may ask for them. A statement that
 * changes a resource records its event by them, without a round trip of its own.
 *
 * @param source a member before them, with the columns `environment_id`, `id`, `type`, `subject_id`, `integrated_account_id`,
 * `payload`, `except_webhook_id`, `is_test`; the partition follows from the time in `id`
 */
export function recordEventsSql(source: string): string {
  return `dispatched as (
       insert into event_dispatch (environment_id, event_id, except_webhook_id)
       select e.environment_id, e.id, e.except_webhook_id from ${source} e where not e.is_test and ${MAY_BE_ASKED_FOR}
     ), recorded as (
       insert into event (environment_id, id, type, subject_id, integrated_account_id, payload, payload_bytes, except_webhook_id, is_test)
       select environment_id, id, type, subject_id, integrated_account_id, payload, octet_length(payload::text), except_webhook_id, is_test
       from ${source}
     )`
}

const NEW_EVENTS =
  rowSet(`environment_id uuid, id uuid, type text, subject_id uuid, integrated_account_id uuid, payload jsonb,
  except_webhook_id uuid, is_test boolean`)
const INSERT_EVENTS = `with new_event as (
       select v.* from ${NEW_EVENTS.rows}
     ), ${recordEventsSql('new_event')}
     select`

/** Inserts the events, and a row for the dispatch of each that a webhook may ask for. */
export async function insertEvents(tx: Db, events: readonly (NewEvent & { readonly id: string })[]): Promise<void> {
  const rows = events.map((event) => ({
    ...event,
    subjectId: event.subjectId ?? null,
    integratedAccountId: event.integratedAccountId ?? null,
    exceptWebhookId: event.exceptWebhookId ?? null,
    isTest: event.isTest ?? false,
  }))
  await execute(tx, INSERT_EVENTS, NEW_EVENTS.of(rows))
}

/** An event of a list, before it is read whole. */
export interface EventHead {
  readonly id: string
  /** Of its payload. */
  readonly bytes: number
}

/**
 * At most `limit` events of the environment below the id `before`, newest first, without their payloads. Uses the primary key,
 * event_of_type, event_of_subject or event_of_account of each day, newest day first, until the page is full.
 */
export async function listEventHeads(
  tx: Db,
  environmentId: string,
  { types, subjectId, integratedAccountId, since, until }: EventFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly EventHead[]> {
  const events = tx('event').where({ environment_id: environmentId })
  if (types !== undefined) events.whereIn('type', types)
  if (subjectId !== undefined) events.where({ subject_id: subjectId })
  if (integratedAccountId !== undefined) events.where({ integrated_account_id: integratedAccountId })
  if (since !== undefined) events.where('id', '>=', lowestIdAt(since))
  if (until !== undefined) events.where('id', '<', lowestIdAt(until))
  return await events.modify(newestFirst, page).select(['id', 'payload_bytes as bytes'])
}

/** The events of a page, newest first. Uses the primary keys of the partitions of the ids. */
export async function findEvents(
  tx: Db,
  environmentId: string,
  ids: readonly string[],
): Promise<readonly EventRecord[]> {
  return await tx('event')
    .where({ environment_id: environmentId })
    .whereIn('id', ids)
    .orderBy('id', 'desc')
    .select(tx.raw(COLUMNS))
}

/** Uses the primary key of the partition of the id. */
export async function findEvent(tx: Db, environmentId: string, id: string): Promise<EventRecord | undefined> {
  return await tx('event').where({ environment_id: environmentId, id }).first(tx.raw(COLUMNS))
}

/** Removes the payload of an event for good; false when there is none of that id. Uses the primary key. */
export async function expungePayload(tx: Db, environmentId: string, id: string): Promise<boolean> {
  const expunged = await execute(
    tx,
    `update event set payload = '{}', payload_bytes = 2, expunged_at = coalesce(expunged_at, now())
     where environment_id = :environmentId and id = :id`,
    { environmentId, id },
  )
  return expunged > 0
}

/** Deletes every event of an environment that is deleted. */
export async function deleteEventsOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, ['event_dispatch', 'event'], environmentId)
}

/** Names an event. */
export interface EventRef {
  readonly environmentId: string
  readonly eventId: string
}

const EVENT_REFS = rowSet('environment_id uuid, event_id uuid')

/** An event to be dispatched, without its payload. */
export interface UndispatchedEvent extends EventRef {
  /** Null: the event does not exist any more. */
  readonly type: string | null
  /** The webhook that gets no delivery of it. */
  readonly exceptWebhookId: string | null
  /** Webhooks up to this one have their deliveries; null: none has. */
  readonly afterWebhookId: string | null
}

/** At most `limit` environments with events to dispatch, in the order of their ids, above `after`. A step in the primary key for each. */
export async function listDispatchTurns(tx: Db, after: string | null, limit: number): Promise<readonly string[]> {
  const rows = await query<{ readonly id: string }>(
    tx,
    `with recursive turn (id, n) as (
       (select environment_id, 1 from event_dispatch
        where :after::uuid is null or environment_id > :after::uuid order by environment_id limit 1)
       union all
       select (select d.environment_id from event_dispatch d where d.environment_id > turn.id
               order by d.environment_id limit 1), n + 1
       from turn where turn.id is not null and n < :limit
     )
     select id from turn where id is not null order by id`,
    { after, limit },
  )
  return rows.map(({ id }) => id)
}

/**
 * Locks at most `limit` events of each environment that are to be dispatched, oldest first, for the transaction that creates their
 * deliveries: events that another transaction has locked are passed over. Uses the primary keys.
 */
export async function lockUndispatchedEvents(
  tx: Tx,
  environmentIds: readonly string[],
  limit: number,
): Promise<readonly UndispatchedEvent[]> {
  return await query(
    tx,
    `select d.environment_id, d.event_id, d.except_webhook_id, d.after_webhook_id, e.type
     from unnest(:environmentIds::uuid[]) as wanted (environment_id)
     cross join lateral (
       select * from event_dispatch waiting where waiting.environment_id = wanted.environment_id
       order by waiting.event_id limit :limit for update skip locked
     ) d
     left join event e on e.environment_id = d.environment_id and e.id = d.event_id
     order by d.environment_id, d.event_id`,
    { environmentIds, limit },
  )
}

/** Notes that events have all their deliveries. The caller has locked them. Uses the primary key. */
export async function finishDispatch(tx: Db, events: readonly EventRef[]): Promise<void> {
  await execute(
    tx,
    `delete from event_dispatch d using ${EVENT_REFS.rows}
     where d.environment_id = v.environment_id and d.event_id = v.event_id`,
    EVENT_REFS.of(events),
  )
}

/** Notes that the webhooks up to one have their deliveries of an event. The caller has locked it. Uses the primary key. */
export async function continueDispatchAfter(
  tx: Db,
  { environmentId, eventId }: EventRef,
  webhookId: string,
): Promise<void> {
  const sql = `update event_dispatch set after_webhook_id = :webhookId
    where environment_id = :environmentId and event_id = :eventId`
  await execute(tx, sql, { webhookId, environmentId, eventId })
}

/** The events, of any environments, in any order, without those that do not exist or were expunged. Uses the primary keys of the partitions of the ids. */
export async function findEventsByRefs(tx: Db, refs: readonly EventRef[]): Promise<readonly EventRecord[]> {
  return await query(
    tx,
    `select e.id, e.environment_id, e.type, e.subject_id, e.integrated_account_id, e.payload, e.created_at
     from ${EVENT_REFS.rows}
     join event e on e.environment_id = v.environment_id and e.id = v.event_id and e.expunged_at is null`,
    EVENT_REFS.of(refs),
  )
}

/** An event to be recorded. */
export interface NewEvent {
  readonly environmentId: string
  readonly type: EventType
  /**
   * What happened to the subject, in the names of the contract (snake_case): the message that names the type in its option
   * `event_types`; never a secret. Stored in at most 256 KiB, see `limitPayload`.
   */
  readonly payload: JsonObject
  /** Id (UUID) of the resource that the event is about: the one named before the colon of the type. */
  readonly subjectId?: string | null | undefined
  /** Id of the account that it concerns, by which events are filtered. */
  readonly integratedAccountId?: string | null | undefined
  /** UUIDv7; for an event whose id must be known before it is recorded. Default: a new one. */
  readonly id?: string | undefined
  /** The webhook that gets no delivery of it: the destination of a run hears of the run in order, from the run itself. */
  readonly exceptWebhookId?: string | null | undefined
  /** An example: it is not dispatched, and says that it is a test. Default: false. */
  readonly isTest?: boolean | undefined
}
