import { execute, query, queryOne, type Tx } from '../database/index.ts'

/** What a set of secrets belongs to. */
export interface SecretRef {
  /** The environment, or for an integration's own config the team. */
  readonly ownerId: string
  readonly subjectType: 'integration' | 'environment_integration' | 'integrated_account' | 'webhook'
  readonly subjectId: string
}

export interface EncryptedSecret {
  readonly name: string
  readonly dataKeyId: string
  readonly sealed: Uint8Array
}

/** All secrets of a subject. Rides on the primary key. */
export async function listSecrets(tx: Tx, ref: SecretRef): Promise<readonly EncryptedSecret[]> {
  return await query(
    tx,
    `select name, data_key_id as "dataKeyId", sealed from secret
     where owner_id = ? and subject_type = ? and subject_id = ?`,
    [ref.ownerId, ref.subjectType, ref.subjectId],
  )
}

/** Stores or replaces one secret. */
export async function upsertSecret(tx: Tx, ref: SecretRef, secret: EncryptedSecret): Promise<void> {
  await execute(
    tx,
    `insert into secret (owner_id, subject_type, subject_id, name, data_key_id, sealed) values (?, ?, ?, ?, ?, ?)
     on conflict (owner_id, subject_type, subject_id, name)
     do update set data_key_id = excluded.data_key_id, sealed = excluded.sealed, created_at = now()`,
    [ref.ownerId, ref.subjectType, ref.subjectId, secret.name, secret.dataKeyId, secret.sealed],
  )
}

/** Removes the named secrets of a subject, or all of them. */
export async function deleteSecrets(tx: Tx, ref: SecretRef, names?: readonly string[]): Promise<void> {
  const bindings = [ref.ownerId, ref.subjectType, ref.subjectId] as const
  const sql = 'delete from secret where owner_id = ? and subject_type = ? and subject_id = ?'
  await (names === undefined
    ? execute(tx, sql, bindings)
    : execute(tx, `${sql} and name = any(?)`, [...bindings, [...names]]))
}

/**
 * Removes every secret of the owner and then the keys that could open a copy of one from a backup.
 *
 * Stored answers go too: they are sealed under the same keys.
 */
export async function deleteSecretsAndKeys(tx: Tx, ownerId: string): Promise<void> {
  for (const table of ['secret', 'idempotency_key', 'data_key'])
    await execute(tx, `delete from ${table} where owner_id = ?`, [ownerId])
}

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
