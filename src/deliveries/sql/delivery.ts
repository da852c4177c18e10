import { type Db, deleteBatchOfEnvironment, execute, jsonb, query } from '../../database/index.ts'
import { insertWaitingSql } from '../../runs/index.ts'
import type { AttemptRecord, DeliveryState, NewDelivery } from '../delivery.ts'
import { DELIVERY_QUEUE, FIRST_GROUP, RETRY_GROUP } from './queue.ts'

/**
 * Inserts deliveries of events that exist and queues them, in one statement; returns the ids of those in ascending order.
 * Finds the events by their primary key.
 */
export async function insertDeliveries(
  tx: Db,
  deliveries: readonly (NewDelivery & { readonly id: string })[],
): Promise<readonly string[]> {
  const inserted = await query<{ readonly id: string }>(
    tx,
    `with v as materialized (
       select * from unnest((select :ids::uuid[]), (select :environmentIds::uuid[]), (select :webhookIds::uuid[]),
         (select :eventIds::uuid[]), (select :triggers::text[])) as v (id, environment_id, webhook_id, event_id, trigger)
     ), new_delivery as (
       insert into delivery (environment_id, id, event_id, event_type, webhook_id, integrated_account_id, trigger)
       select v.environment_id, v.id, e.id, e.type, v.webhook_id, e.integrated_account_id, v.trigger
       from v join event e on e.environment_id = v.environment_id and e.id = v.event_id and e.expunged_at is null
       order by v.id
       returning *
     ), waiting as (
       select id as delivery_id, environment_id, webhook_id, event_id, trigger, null::timestamptz as available_at, 0 as attempt,
         case when trigger in ('recovery', 'missing') then '${RETRY_GROUP}' else '${FIRST_GROUP}' end as queue_group
       from new_delivery
     ), enqueued as (${insertWaitingSql(DELIVERY_QUEUE, 'waiting')})
     select id from new_delivery order by id`,
    {
      ids: deliveries.map(({ id }) => id),
      environmentIds: deliveries.map(({ environmentId }) => environmentId),
      webhookIds: deliveries.map(({ webhookId }) => webhookId),
      eventIds: deliveries.map(({ eventId }) => eventId),
      triggers: deliveries.map(({ trigger }) => trigger),
    },
  )
  return inserted.map(({ id }) => id)
}

/** What became of a delivery when its lease ended. */
export interface SettledDelivery {
  readonly environmentId: string
  readonly id: string
  readonly state: DeliveryState
  /** Attempts that were made and count. */
  readonly attempts: number
  /** When it is due again; null: it is over. */
  readonly nextAttemptAt: Date | null
  /** Of the attempt, null when nothing was received; undefined: there was no attempt, what is stored stays. */
  readonly status: number | null | undefined
  /** What went wrong, or why it was discarded; undefined: what is stored stays. */
  readonly errorClass: string | null | undefined
}

/**
 * Updates settled deliveries, in one statement that updates in the page. Uses the primary keys of the partitions of the ids: a
 * join alone may be planned as a scan of the day.
 */
export async function updateSettledDeliveries(tx: Db, settled: readonly SettledDelivery[]): Promise<void> {
  await execute(
    tx,
    `with v as materialized (
       select * from unnest((select :environmentIds::uuid[]), (select :ids::uuid[]), (select :states::text[]),
         (select :attempts::integer[]), (select :nextAttemptsAt::timestamptz[]), (select :statuses::smallint[]),
         (select :errorClasses::text[]), (select :keepsStatus::boolean[]), (select :keepsErrorClass::boolean[]))
       as v (environment_id, id, state, attempts, next_attempt_at, status, error_class, keeps_status, keeps_error_class)
     )
     update delivery d set state = v.state, attempts = v.attempts, next_attempt_at = v.next_attempt_at,
       last_status = case when v.keeps_status then d.last_status else v.status end,
       last_error_class = case when v.keeps_error_class then d.last_error_class else v.error_class end,
       finished_at = case when v.next_attempt_at is null then now() end
     from v where d.environment_id = v.environment_id and d.id = v.id
       and d.environment_id = any((select :environmentIds::uuid[])::uuid[]) and d.id = any((select :ids::uuid[])::uuid[])`,
    {
      environmentIds: settled.map(({ environmentId }) => environmentId),
      ids: settled.map(({ id }) => id),
      states: settled.map(({ state }) => state),
      attempts: settled.map(({ attempts }) => attempts),
      nextAttemptsAt: settled.map(({ nextAttemptAt }) => nextAttemptAt),
      statuses: settled.map(({ status }) => status ?? null),
      errorClasses: settled.map(({ errorClass }) => errorClass ?? null),
      keepsStatus: settled.map(({ status }) => status === undefined),
      keepsErrorClass: settled.map(({ errorClass }) => errorClass === undefined),
    },
  )
}

/** An attempt to be stored. */
export interface NewAttempt extends AttemptRecord {
  readonly environmentId: string
  readonly deliveryId: string
}

/** Inserts attempts; the partition follows from the delivery's id. */
export async function insertAttempts(tx: Db, attempts: readonly NewAttempt[]): Promise<void> {
  await execute(
    tx,
    `insert into delivery_attempt (environment_id, delivery_id, n, scheduled_at, started_at, dns_ms, connect_ms, tls_ms,
       first_byte_ms, total_ms, status, error_class, error_message, remote_address, request_headers, response_headers,
       response_body)
     select * from unnest((select :environmentIds::uuid[]), (select :deliveryIds::uuid[]), (select :ns::integer[]),
       (select :scheduledAt::timestamptz[]), (select :startedAt::timestamptz[]), (select :dnsMs::real[]),
       (select :connectMs::real[]), (select :tlsMs::real[]), (select :firstByteMs::real[]), (select :totalMs::real[]),
       (select :statuses::smallint[]), (select :errorClasses::text[]), (select :errorMessages::text[]),
       (select :remoteAddresses::text[]), (select :requestHeaders::jsonb[]), (select :responseHeaders::jsonb[]),
       (select :responseBodies::text[]))
     on conflict do nothing`,
    {
      environmentIds: attempts.map(({ environmentId }) => environmentId),
      deliveryIds: attempts.map(({ deliveryId }) => deliveryId),
      ns: attempts.map(({ n }) => n),
      scheduledAt: attempts.map(({ scheduledAt }) => scheduledAt),
      startedAt: attempts.map(({ startedAt }) => startedAt),
      dnsMs: attempts.map(({ dnsMs }) => dnsMs),
      connectMs: attempts.map(({ connectMs }) => connectMs),
      tlsMs: attempts.map(({ tlsMs }) => tlsMs),
      firstByteMs: attempts.map(({ firstByteMs }) => firstByteMs),
      totalMs: attempts.map(({ totalMs }) => totalMs),
      statuses: attempts.map(({ status }) => status),
      errorClasses: attempts.map(({ errorClass }) => errorClass),
      errorMessages: attempts.map(({ errorMessage }) => errorMessage),
      remoteAddresses: attempts.map(({ remoteAddress }) => remoteAddress),
      requestHeaders: attempts.map(({ requestHeaders }) => jsonb(requestHeaders)),
      responseHeaders: attempts.map(({ responseHeaders }) =>
        responseHeaders === null ? null : jsonb(responseHeaders),
      ),
      responseBodies: attempts.map(({ responseBody }) => responseBody),
    },
  )
}

/** Deletes a batch of what a deleted environment has delivered and was to deliver; returns whether there is no more. */
export async function deleteDeliveriesOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  const tables = ['delivery_queue', 'delivery_lease', 'delivery_attempt', 'delivery']
  return await deleteBatchOfEnvironment(tx, tables, environmentId)
}

/** How many deliveries of one queue group wait or are being sent. */
export interface DeliveryBacklog {
  readonly group: string
  readonly state: 'ready' | 'later' | 'held'
  readonly deliveries: number
}

/** The backlog over all environments. Reads the whole queue: some 0.1 s for a million deliveries. */
export async function countDeliveryBacklog(tx: Db): Promise<readonly DeliveryBacklog[]> {
  const found = await query<DeliveryBacklog>(
    tx,
    `select queue_group as group, case when available_at <= now() then 'ready' else 'later' end as state,
       count(*) as deliveries from delivery_queue group by 1, 2
     union all select queue_group, 'held', count(*) from delivery_lease group by 1`,
  )
  const count = (group: string, state: string) =>
    found.find((each) => each.group === group && each.state === state)?.deliveries ?? 0
  return [FIRST_GROUP, RETRY_GROUP].flatMap((group) =>
    (['ready', 'later', 'held'] as const).map((state) => ({ group, state, deliveries: count(group, state) })),
  )
}
