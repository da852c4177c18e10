import { type Db, execute, query, queryOne } from '../../database/database.ts'

/** A request to replace the data keys that are older than it. */
export interface DataKeyRotation {
  readonly id: string
  /** Environment or team; null: all. */
  readonly ownerId: string | null
  readonly requestedAt: Date
}

/** Requests the rotation of an owner's data key, or of all; one that is under way with the same scope is continued. */
export async function insertRotation(tx: Db, { id, ownerId }: Pick<DataKeyRotation, 'id' | 'ownerId'>): Promise<void> {
  await execute(
    tx,
    'insert into data_key_rotation (id, owner_id) values (:id, :ownerId::uuid) on conflict do nothing',
    { id, ownerId },
  )
}

/** The rotation that was requested first. */
export async function findRotation(tx: Db): Promise<DataKeyRotation | undefined> {
  return await queryOne(
    tx,
    'select id, owner_id, requested_at from data_key_rotation order by requested_at, id limit 1',
  )
}

/** Ends a rotation when no current key is older than it. @returns whether it has ended */
export async function completeRotation(tx: Db, { id, ownerId, requestedAt }: DataKeyRotation): Promise<boolean> {
  const deleted = await execute(
    tx,
    `delete from data_key_rotation where id = :id and not exists (
       select from data_key where is_current and created_at < :requestedAt
         and (:ownerId::uuid is null or owner_id = :ownerId))`,
    { id, ownerId, requestedAt },
  )
  return deleted > 0
}

/** Locks current keys that are older than a rotation; skips those that others lock. */
export async function lockKeysToReplace(
  tx: Db,
  { ownerId, requestedAt }: DataKeyRotation,
  limit: number,
): Promise<readonly { readonly id: string; readonly ownerId: string }[]> {
  return await query(
    tx,
    `select id, owner_id from data_key where is_current and created_at < :requestedAt
       and (:ownerId::uuid is null or owner_id = :ownerId)
     limit :limit for no key update skip locked`,
    { ownerId, requestedAt, limit },
  )
}

/** Makes a key no longer the current one of its owner; its values are due to be encrypted anew. */
export async function replaceDataKey(tx: Db, id: string): Promise<void> {
  await execute(tx, 'update data_key set is_current = false, reseal_at = now() where id = :id', { id })
}

/** A replaced key whose values are encrypted anew, or that is deleted. */
export interface ReplacedDataKey {
  readonly id: string
  readonly ownerId: string
  /** Nothing has been left under it for an hour. */
  readonly isUnused: boolean
}

/** Claims the replaced key that has been due the longest; another process claims it again after `leaseMs`. Uses data_key_reseal. */
export async function claimReplacedKey(tx: Db, leaseMs: number, graceMs: number): Promise<ReplacedDataKey | undefined> {
  return await queryOne(
    tx,
    `update data_key set reseal_at = now() + :leaseMs * interval '1 millisecond'
     where id = (
       select id from data_key where not is_current and reseal_at <= now()
       order by reseal_at limit 1 for no key update skip locked
     )
     returning id, owner_id,
       coalesce(unused_since <= now() - :graceMs * interval '1 millisecond', false) as is_unused`,
    { leaseMs, graceMs },
  )
}

/** Keeps a claim for longer. */
export async function renewReplacedKey(tx: Db, id: string, leaseMs: number): Promise<void> {
  await execute(tx, `update data_key set reseal_at = now() + :leaseMs * interval '1 millisecond' where id = :id`, {
    id,
    leaseMs,
  })
}

/** Ends a pass over the values of a replaced key. @param left values that are still under it */
export async function settleReplacedKey(tx: Db, id: string, left: number, delayMs: number): Promise<void> {
  await execute(
    tx,
    `update data_key set values_left = :left, reseal_at = now() + :delayMs * interval '1 millisecond',
       unused_since = case when :left::integer = 0 then coalesce(unused_since, now()) end
     where id = :id`,
    { id, left, delayMs },
  )
}

/** Deletes a replaced key. */
export async function deleteDataKey(tx: Db, id: string): Promise<void> {
  await execute(tx, 'delete from data_key where id = :id and not is_current', { id })
}

/** What a rotation still has to do, and what it left. */
export interface RotationProgress {
  /** Current keys that a requested rotation replaces. */
  readonly toReplace: number
  /** Replaced keys whose values no pass has encrypted anew yet. */
  readonly toReseal: number
  /** Replaced keys that have values left. */
  readonly withValuesLeft: number
  readonly valuesLeft: number
  /** Replaced keys without values, which are deleted an hour after the last one. */
  readonly unused: number
}

/** The progress of rotations of one owner, or of all. */
export async function readRotationProgress(tx: Db, ownerId: string | undefined): Promise<RotationProgress> {
  const [progress] = await query<RotationProgress>(
    tx,
    `select count(*) filter (where is_current and exists (
         select from data_key_rotation rotation where data_key.created_at < rotation.requested_at
           and (rotation.owner_id is null or rotation.owner_id = data_key.owner_id))) as to_replace,
       count(*) filter (where not is_current and values_left is null) as to_reseal,
       count(*) filter (where not is_current and values_left > 0) as with_values_left,
       coalesce(sum(values_left) filter (where not is_current), 0)::bigint as values_left,
       count(*) filter (where not is_current and values_left = 0) as unused
     from data_key where :ownerId::uuid is null or owner_id = :ownerId`,
    { ownerId: ownerId ?? null },
  )
  return progress ?? { toReplace: 0, toReseal: 0, withValuesLeft: 0, valuesLeft: 0, unused: 0 }
}
