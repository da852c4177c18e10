import { query, type Tx } from '../../database/index.ts'
import { insertWaitingSql } from '../../runs/index.ts'
import type { NewDelivery } from '../delivery.ts'
import { DELIVERY_QUEUE, FIRST_GROUP, RETRY_GROUP } from './queue.ts'

/**
 * Inserts deliveries of events that exist and queues them, in one statement; returns the ids of those in ascending order.
 * Finds the events by their primary key.
 */
export async function insertDeliveries(
  tx: Tx,
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
       select id as delivery_id, environment_id, webhook_id, event_id, null::timestamptz as available_at, 0 as attempt,
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
