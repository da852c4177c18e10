import { type Db, deleteBatchOfEnvironment, execute, query } from '../../../foundation/database/index.ts'

/** Deletes dedupe keys whose window is over; returns how many. Uses inbound_dedupe_expiry. */
export async function deleteExpiredClaims(tx: Db, limit: number): Promise<number> {
  return await execute(
    tx,
    `delete from inbound_dedupe where (source_id, key) in (
       select source_id, key from inbound_dedupe where expires_at <= now() order by expires_at limit :limit
       for update skip locked)`,
    { limit },
  )
}

/** The smallest UUIDv7 of a moment that is so many seconds ago: its first 48 bits are milliseconds since 1970. */
const LOWEST_ID = `(lpad(to_hex((extract(epoch from now()) * 1000)::bigint - (:keepSeconds::float8 * 1000)::bigint), 12, '0')
  || repeat('0', 20))::uuid`

/**
 * Deletes rejected requests and handshakes that are older, with their contents; returns how many. Uses
 * inbound_short_lived_oldest and the primary keys of the partitions of the ids.
 */
export async function deleteShortLived(tx: Db, keepMs: number, limit: number): Promise<number> {
  const deleted = await query(
    tx,
    `with old as (
       delete from inbound_short_lived where (source_id, event_id) in (
         select source_id, event_id from inbound_short_lived where event_id < ${LOWEST_ID} order by event_id limit :limit
         for update skip locked)
       returning environment_id, event_id
     ),
     contents as (delete from inbound_content c using old where c.environment_id = old.environment_id and c.id = old.event_id),
     events as (delete from inbound_event e using old where e.environment_id = old.environment_id and e.id = old.event_id)
     select from old`,
    { keepSeconds: keepMs / 1_000, limit },
  )
  return deleted.length
}

const TABLES = [
  'inbound_queue',
  'inbound_lease',
  'inbound_dedupe',
  'inbound_short_lived',
  'inbound_content',
  'inbound_item',
  'inbound_event',
  'sync_hint',
]

/** Deletes a batch of what third parties sent to a deleted environment; returns whether there is no more. Holders of leases find them lost. */
export async function deleteInboundOfEnvironment(tx: Db, environmentId: string): Promise<boolean> {
  return await deleteBatchOfEnvironment(tx, TABLES, environmentId)
}
