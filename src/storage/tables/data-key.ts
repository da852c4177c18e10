import { query, queryOne, type Tx } from '../database.ts'

/** A wrapped data key of one owner (an environment, or a team). */
export interface DataKeyRecord {
  readonly id: string
  readonly keyEncryptionKeyId: string
  readonly wrapped: Uint8Array
}

const DATA_KEY_COLUMNS = 'id, key_encryption_key_id as "keyEncryptionKeyId", wrapped_key as wrapped'

/** The key that seals new values of the owner. Rides on data_key_current. */
export async function findCurrentDataKey(tx: Tx, ownerId: string): Promise<DataKeyRecord | undefined> {
  return await queryOne(tx, `select ${DATA_KEY_COLUMNS} from data_key where owner_id = ? and is_current`, [ownerId])
}

/** Any key of the owner, current or not. Rides on the primary key. */
export async function findDataKey(tx: Tx, ownerId: string, id: string): Promise<DataKeyRecord | undefined> {
  return await queryOne(tx, `select ${DATA_KEY_COLUMNS} from data_key where id = ? and owner_id = ?`, [id, ownerId])
}

/** One key under each key encryption key that is in use, with its owner. Reads the whole table, a row per environment. */
export async function listDataKeySamples(tx: Tx): Promise<readonly (DataKeyRecord & { readonly ownerId: string })[]> {
  return await query(
    tx,
    `select distinct on (key_encryption_key_id) ${DATA_KEY_COLUMNS}, owner_id as "ownerId" from data_key
     order by key_encryption_key_id, id`,
  )
}

/** Stores a first key; of two simultaneous first keys one wins (data_key_current) and the other is dropped. */
export async function insertDataKey(tx: Tx, ownerId: string, key: DataKeyRecord): Promise<void> {
  await queryOne(
    tx,
    `insert into data_key (id, owner_id, key_encryption_key_id, wrapped_key) values (?, ?, ?, ?)
     on conflict (owner_id) where is_current do nothing`,
    [key.id, ownerId, key.keyEncryptionKeyId, key.wrapped],
  )
}
