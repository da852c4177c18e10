import { type Db, execute, query, queryOne } from '../../database/database.ts'
import { LIVE } from './key-process.ts'

/** A wrapped data key of one owner (an environment, or a team). */
export interface DataKeyRecord {
  readonly id: string
  readonly keyEncryptionKeyId: string
  readonly wrapped: Uint8Array
}

/** A data key with its owner. */
export interface OwnedDataKey extends DataKeyRecord {
  readonly ownerId: string
}

const DATA_KEY = ['id', 'key_encryption_key_id', 'wrapped_key as wrapped']

/** The key that encrypts new values of the owner. Uses data_key_current. */
export async function findCurrentDataKey(tx: Db, ownerId: string): Promise<DataKeyRecord | undefined> {
  return await tx('data_key').where({ owner_id: ownerId, is_current: true }).first(DATA_KEY)
}

/** Any key of the owner, current or not. Uses the primary key. */
export async function findDataKey(tx: Db, ownerId: string, id: string): Promise<DataKeyRecord | undefined> {
  return await tx('data_key').where({ id, owner_id: ownerId }).first(DATA_KEY)
}

/** One key under each key encryption key that is in use, with its owner. Reads a row per environment. */
export async function listDataKeySamples(tx: Db): Promise<readonly OwnedDataKey[]> {
  return await tx('data_key')
    .distinctOn('key_encryption_key_id')
    .orderBy(['key_encryption_key_id', 'id'])
    .select(...DATA_KEY, 'owner_id')
}

/** Whether anything may be encrypted; false of a database without tables, too. */
export async function hasDataKeys(tx: Db): Promise<boolean> {
  const found = await queryOne<{ readonly isThere: boolean }>(
    tx,
    `select to_regclass('data_key') is not null as is_there`,
  )
  return found?.isThere === true && (await tx('data_key').first('id')) !== undefined
}

/**
 * Stores a current key; of two simultaneous ones one is stored (unique index data_key_current) and the other dropped. Its key
 * encryption key is registered with it, so that it cannot be retired while this transaction goes on.
 */
export async function insertDataKey(tx: Db, ownerId: string, key: DataKeyRecord): Promise<void> {
  await execute(
    tx,
    `with registered as (
       insert into key_encryption_key (id) values (:keyEncryptionKeyId) on conflict do nothing
     )
     insert into data_key (id, owner_id, key_encryption_key_id, wrapped_key)
     values (:id, :ownerId, :keyEncryptionKeyId, :wrapped)
     on conflict (owner_id) where is_current do nothing`,
    { id: key.id, ownerId, keyEncryptionKeyId: key.keyEncryptionKeyId, wrapped: key.wrapped },
  )
}

/**
 * Which keys the other live processes have, read after locking all key encryption keys, so that a process that starts meanwhile
 * (`awaitDataKeysUnderWay`) either is among them or sees the data key that this transaction stores.
 */
export async function readOthersUnderLock(
  tx: Db,
  processId: string | undefined,
): Promise<readonly (readonly string[])[]> {
  await query(tx, 'select id from key_encryption_key for key share')
  const rows = await query<{ knownKeys: string[] }>(
    tx,
    `select known_keys from key_ring_process where ${LIVE} and id is distinct from :processId::uuid`,
    { processId: processId ?? null },
  )
  return rows.map(({ knownKeys }) => knownKeys)
}

/** Waits until the transactions have ended that are storing data keys. */
export async function awaitDataKeysUnderWay(tx: Db): Promise<void> {
  await query(tx, 'select id from key_encryption_key order by id for update')
}

/** Data keys under other key encryption keys than the given one, after an id. Locks them; skips those that others lock. */
export async function lockDataKeysUnderOthers(
  tx: Db,
  keyEncryptionKeyId: string,
  after: string | undefined,
  limit: number,
): Promise<readonly OwnedDataKey[]> {
  return await query(
    tx,
    `select id, owner_id, key_encryption_key_id, wrapped_key as wrapped from data_key
     where key_encryption_key_id <> :keyEncryptionKeyId and (:after::uuid is null or id > :after)
     order by id limit :limit for no key update skip locked`,
    { keyEncryptionKeyId, after: after ?? null, limit },
  )
}

/** Stores a data key as it is wrapped under another key encryption key. */
export async function updateWrapped(
  tx: Db,
  { id, keyEncryptionKeyId, wrapped }: Pick<OwnedDataKey, 'id' | 'keyEncryptionKeyId' | 'wrapped'>,
): Promise<void> {
  await execute(
    tx,
    'update data_key set key_encryption_key_id = :keyEncryptionKeyId, wrapped_key = :wrapped where id = :id',
    { id, keyEncryptionKeyId, wrapped },
  )
}

/** Registers a key encryption key that is to wrap data keys. */
export async function registerKeyEncryptionKey(tx: Db, id: string): Promise<void> {
  await execute(tx, 'insert into key_encryption_key (id) values (:id) on conflict do nothing', { id })
}

/**
 * Forgets a key encryption key. Waits for transactions that are storing data keys under it.
 *
 * @throws the violation of data_key_wrapped_under while a data key needs it
 */
export async function deleteKeyEncryptionKey(tx: Db, id: string): Promise<void> {
  await execute(tx, 'delete from key_encryption_key where id = :id', { id })
}

/** Key encryption keys that wrap data keys or did, with the number of data keys; those of owners that have a newer one too. */
export async function countDataKeys(
  tx: Db,
): Promise<readonly { readonly id: string; readonly current: number; readonly replaced: number }[]> {
  return await query(
    tx,
    `select key_encryption_key.id, count(*) filter (where is_current) as current,
       count(*) filter (where not is_current) as replaced
     from key_encryption_key left join data_key on key_encryption_key_id = key_encryption_key.id
     group by key_encryption_key.id order by key_encryption_key.id`,
  )
}
