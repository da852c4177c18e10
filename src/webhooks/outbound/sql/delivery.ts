import { newId } from '../../../foundation/base/index.ts'
import {
  type Db,
  deleteBatchOfEnvironment,
  execute,
  query,
  rowSet,
  type Tx,
} from '../../../foundation/database/index.ts'
import { type Backlog, countBacklog, insertWaitingSql } from '../../../foundation/queue/index.ts'
import type { AttemptRecord, DeliveryState, NewDelivery } from '../delivery.ts'
import { DELIVERY_QUEUE, FIRST_GROUP, RETRY_GROUP } from './queue.ts'

const NEW_DELIVERIES = rowSet('id uuid, environment_id uuid, webhook_id uuid, event_id uuid, trigger text')

/**
 * Creates deliveries and puts them into the queue, in one statement. A webhook that does not exist, is paused or disabled is
 * noticed when its turn comes: the delivery is discarded then. Finds the events by their primary key.
 *
 * Deliveries of the triggers `recovery` and `missing` share the slots of later attempts, so that they delay no fresh event.
 *
 * @returns the ids of the new deliveries, UUIDv7 in the order given; an event that no longer exists gets none
 */
export async function enqueueDeliveries(tx: Tx, deliveries: readonly NewDelivery[]): Promise<readonly string[]> {
  if (deliveries.length === 0) return []
  const inserted = await query<{ readonly id: string }>(
    tx,
    `with v as materialized (
       select * from ${NEW_DELIVERIES.rows}
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
    NEW_DELIVERIES.of(deliveries.map((delivery) => ({ ...delivery, id: newId() }))),
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

const SETTLED =
  rowSet(`environment_id uuid, id uuid, state text, attempts integer, next_attempt_at timestamptz, status smallint,
  error_class text, keeps_status boolean, keeps_error_class boolean`)

/**
 * Updates settled deliveries, in one statement that updates in the page. Uses the primary keys of the partitions of the ids: a
 * join alone may be planned as a scan of the day.
 */
export async function updateSettledDeliveries(tx: Db, settled: readonly SettledDelivery[]): Promise<void> {
  await execute(
    tx,
    `with v as materialized (
       select * from ${SETTLED.rows}
     )
     update delivery d set state = v.state, attempts = v.attempts, next_attempt_at = v.next_attempt_at,
       last_status = case when v.keeps_status then d.last_status else v.status end,
       last_error_class = case when v.keeps_error_class then d.last_error_class else v.error_class end,
       finished_at = case when v.next_attempt_at is null then now() end
     from v where d.environment_id = v.environment_id and d.id = v.id
       and d.environment_id = any((select :environmentIds::uuid[])::uuid[]) and d.id = any((select :ids::uuid[])::uuid[])`,
    SETTLED.of(
      settled.map(({ status, errorClass, ...delivery }) => ({
        ...delivery,
        status: status ?? null,
        errorClass: errorClass ?? null,
        keepsStatus: status === undefined,
        keepsErrorClass: errorClass === undefined,
      })),
    ),
  )
}

/** An attempt to be stored. */
export interface NewAttempt extends AttemptRecord {
  readonly environmentId: string
  readonly deliveryId: string
}

const ATTEMPTS =
  rowSet(`environment_id uuid, delivery_id uuid, n integer, scheduled_at timestamptz, started_at timestamptz, dns_ms real,
  connect_ms real, tls_ms real, first_byte_ms real, total_ms real, status smallint, error_class text,
  error_message text, remote_address text, request_headers jsonb, response_headers jsonb, response_body text`)

/** Inserts attempts; the partition follows from the delivery's id. */
export async function insertAttempts(tx: Db, attempts: readonly NewAttempt[]): Promise<void> {
  await execute(
    tx,
    `insert into delivery_attempt (${ATTEMPTS.columns}) select * from ${ATTEMPTS.rows} on conflict do nothing`,
    ATTEMPTS.of(attempts),
  )
}

/** Deletes a batch of what a deleted environment has delivered and was to deliver; returns whether there is no more. */
export async function deleteDeliveriesOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  const tables = ['delivery_queue', 'delivery_lease', 'delivery_attempt', 'delivery']
  return await deleteBatchOfEnvironment(tx, tables, environmentId)
}

/** The backlog of deliveries over all environments. */
export async function countDeliveryBacklog(tx: Db): Promise<readonly Backlog[]> {
  return await countBacklog(tx, DELIVERY_QUEUE, [FIRST_GROUP, RETRY_GROUP])
}
