import { execute, query, type Tx } from '../database.ts'

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
