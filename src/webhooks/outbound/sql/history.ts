import { lowestIdAt } from '../../../foundation/base/index.ts'
import { type Db, newestFirst, query } from '../../../foundation/database/index.ts'
import type { AttemptRecord, DeliveryRecord, DeliveryState } from '../delivery.ts'

/** Which deliveries to list; what is undefined does not restrict. */
export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined
  readonly eventType?: string | undefined
  readonly webhookId?: string | undefined
  readonly integratedAccountId?: string | undefined
  readonly eventId?: string | undefined
  /** Created at or after this moment. */
  readonly since?: Date | undefined
  /** Created before this moment. */
  readonly until?: Date | undefined
}

const COLUMNS = `id, environment_id, event_id, event_type, webhook_id, integrated_account_id, state, trigger, attempts,
  last_status, last_error_class, next_attempt_at, created_at, finished_at`

/**
 * At most `limit` deliveries of the environment below the id `before`, newest first. Each filter has an index that ends with
 * the id, so that a page is read in order, newest day first, without sorting: delivery_of_event, delivery_of_webhook,
 * delivery_of_account, delivery_of_type, delivery_given_up (failed and discarded ones), delivery_queue_of_environment (pending
 * ones; the leases are few), and the primary key for times, for delivered ones, which most are, and for no filter. Of several filters the planner takes the rarest, and reads past what the others leave out.
 */
export async function listDeliveryRecords(
  tx: Db,
  environmentId: string,
  filter: DeliveryFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly DeliveryRecord[]> {
  return await deliveriesWhere(tx, environmentId, filter).modify(newestFirst, page).select(tx.raw(COLUMNS))
}

function deliveriesWhere(tx: Db, environmentId: string, filter: DeliveryFilter) {
  const { state, eventType, webhookId, integratedAccountId, eventId, since, until } = filter
  const deliveries = tx('delivery').where({ environment_id: environmentId })
  if (state === 'failed' || state === 'discarded') deliveries.where({ given_up: state })
  else if (state !== undefined) deliveries.where({ state })
  if (state === 'pending') deliveries.whereIn('id', unfinishedIds(tx, environmentId))
  if (eventType !== undefined) deliveries.where({ event_type: eventType })
  if (webhookId !== undefined) deliveries.where({ webhook_id: webhookId })
  if (integratedAccountId !== undefined) deliveries.where({ integrated_account_id: integratedAccountId })
  if (eventId !== undefined) deliveries.where({ event_id: eventId })
  if (since !== undefined) deliveries.where('id', '>=', lowestIdAt(since))
  if (until !== undefined) deliveries.where('id', '<', lowestIdAt(until))
  return deliveries
}

/** Deliveries that wait or are being sent. */
function unfinishedIds(tx: Db, environmentId: string) {
  const idsOf = (table: string) => tx(table).where({ environment_id: environmentId }).select('delivery_id')
  return idsOf('delivery_queue').unionAll(idsOf('delivery_lease'))
}

/** How many deliveries of a group there are. */
export interface DeliveryCount {
  readonly state: DeliveryState
  readonly eventType: string
  readonly webhookId: string
  readonly count: number
}

/** Counts the newest `limit` deliveries that match, by state, type and webhook. Uses the indexes of `listDeliveryRecords`. */
export async function countDeliveries(
  tx: Db,
  environmentId: string,
  filter: DeliveryFilter,
  limit: number,
): Promise<readonly DeliveryCount[]> {
  const newest = deliveriesWhere(tx, environmentId, filter)
    .modify(newestFirst, { limit })
    .select(['state', 'event_type', 'webhook_id'])
  return await tx
    .from(newest.as('newest'))
    .groupBy(['state', 'event_type', 'webhook_id'])
    .select(['state', 'event_type', 'webhook_id'])
    .count('* as count')
}

/** Uses the primary key of the partition of the id. */
export async function findDelivery(tx: Db, environmentId: string, id: string): Promise<DeliveryRecord | undefined> {
  return await tx('delivery').where({ environment_id: environmentId, id }).first(tx.raw(COLUMNS))
}

/** The newest `limit` attempts of a delivery, first one first. Uses the primary key of the partition of the delivery's id. */
export async function listAttempts(
  tx: Db,
  environmentId: string,
  deliveryId: string,
  limit: number,
): Promise<readonly AttemptRecord[]> {
  const newest = await query<AttemptRecord>(
    tx,
    `select n, scheduled_at, started_at, dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, status, error_class,
       error_message, remote_address, request_headers, response_headers, response_body
     from delivery_attempt where environment_id = :environmentId and delivery_id = :deliveryId order by n desc limit :limit`,
    { environmentId, deliveryId, limit },
  )
  return newest.toReversed()
}
