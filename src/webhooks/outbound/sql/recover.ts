import { type Db, query, queryOne } from '../../../foundation/database/index.ts'

/** Ids between two others, both exclusive. */
export interface IdRange {
  readonly environmentId: string
  readonly after: string
  readonly below: string
}

/** A delivery to a webhook. */
export interface ScannedDelivery {
  readonly id: string
  readonly eventId: string
  /** It failed or was discarded, was no test, and there is no later delivery of the event to the webhook. */
  readonly isUndelivered: boolean
}

/** The oldest `limit` deliveries to a webhook in the range, oldest first. Uses delivery_of_webhook, and delivery_of_event for each. */
export async function scanDeliveries(
  tx: Db,
  range: IdRange,
  webhookId: string,
  limit: number,
): Promise<readonly ScannedDelivery[]> {
  return await query(
    tx,
    `with scanned as materialized (
       select id, event_id, state in ('failed', 'discarded') and trigger <> 'test' as has_failed from delivery
       where environment_id = :environmentId and webhook_id = :webhookId and id > :after and id < :below
       order by id limit :limit
     )
     select id, event_id, has_failed and not exists (
         select from delivery later where later.environment_id = :environmentId and later.event_id = scanned.event_id
           and later.webhook_id = :webhookId and later.id > scanned.id
       ) as is_undelivered
     from scanned order by id`,
    { ...range, webhookId, limit },
  )
}

/** An event, before its payload is read. */
export interface ScannedEvent {
  readonly id: string
  readonly type: string
  readonly payloadBytes: number
  /**
   * It has its payload and is no test, and the webhook has no delivery of it and will get none: the event is dispatched, and the
   * webhook is not the destination of the run that it is about.
   */
  readonly isUnsent: boolean
}

/** The oldest `limit` events in the range, oldest first. Uses the primary key, and delivery_of_event for each. */
export async function scanEvents(
  tx: Db,
  range: IdRange,
  webhookId: string,
  limit: number,
): Promise<readonly ScannedEvent[]> {
  return await query(
    tx,
    `with scanned as materialized (
       select id, type, payload_bytes,
         except_webhook_id is distinct from :webhookId and expunged_at is null and not is_test as is_sendable
       from event where environment_id = :environmentId and id > :after and id < :below order by id limit :limit
     )
     select id, type, payload_bytes, is_sendable and not exists (
         select from delivery d
         where d.environment_id = :environmentId and d.event_id = scanned.id and d.webhook_id = :webhookId
       ) and not exists (
         select from event_dispatch waiting where waiting.event_id = scanned.id and waiting.environment_id = :environmentId
       ) as is_unsent
     from scanned order by id`,
    { ...range, webhookId, limit },
  )
}

/** How many deliveries to a webhook are in the range; undefined above `atMost`. Uses delivery_of_webhook alone. */
export async function countDeliveriesBetween(
  tx: Db,
  range: IdRange,
  webhookId: string,
  atMost: number,
): Promise<number | undefined> {
  const found = await queryOne<{ readonly count: number }>(
    tx,
    `select count(*) from (select from delivery
       where environment_id = :environmentId and webhook_id = :webhookId and id > :after and id < :below limit :limit) found`,
    { ...range, webhookId, limit: atMost + 1 },
  )
  return found === undefined || found.count > atMost ? undefined : found.count
}

/** How many events are in the range; undefined above `atMost`. Uses the primary key alone. */
export async function countEventsBetween(tx: Db, range: IdRange, atMost: number): Promise<number | undefined> {
  const found = await queryOne<{ readonly count: number }>(
    tx,
    `select count(*) from (select from event
       where environment_id = :environmentId and id > :after and id < :below limit :limit) found`,
    { ...range, limit: atMost + 1 },
  )
  return found === undefined || found.count > atMost ? undefined : found.count
}
