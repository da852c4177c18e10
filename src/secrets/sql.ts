import { type Db, query } from '../database/index.ts'

/** What a set of secrets belongs to. */
export interface SecretRef {
  /** The environment, or for an integration's own config the team. */
  readonly ownerId: string
  readonly subjectType: 'integration' | 'environment_integration' | 'integrated_account' | 'webhook' | 'inbound_webhook'
  readonly subjectId: string
}

/** A stored secret: `ciphertext` opens with the data key. */
export interface EncryptedSecret {
  readonly name: string
  readonly dataKeyId: string
  readonly ciphertext: Uint8Array
}

/** What `secretsSql` selects: null without any; the ciphertexts are base64. */
export type SecretsColumn = readonly (Omit<EncryptedSecret, 'ciphertext'> & { readonly ciphertext: string })[] | null

/** SQL: the secrets of the rows of a table alias, as a column of the statement that reads them. Uses the primary key. */
export function secretsSql(subjectType: SecretRef['subjectType'], alias: string): string {
  return `(select json_agg(json_build_object('name', name, 'dataKeyId', data_key_id, 'ciphertext', encode(sealed, 'base64')))
    from secret where owner_id = ${alias}.environment_id and subject_type = '${subjectType}' and subject_id = ${alias}.id)`
}

/** The secrets in a column of `secretsSql`. */
export function secretsFromColumn(column: SecretsColumn): readonly EncryptedSecret[] {
  return (column ?? []).map(({ ciphertext, ...rest }) => ({ ...rest, ciphertext: Buffer.from(ciphertext, 'base64') }))
}

/** All secrets of a subject. Prepared; uses the primary key. */
export async function listSecrets(tx: Db, ref: SecretRef): Promise<readonly EncryptedSecret[]> {
  return await query(
    tx,
    `select name, data_key_id, sealed as ciphertext from secret
     where owner_id = :ownerId and subject_type = :subjectType and subject_id = :subjectId`,
    { ...ref },
  )
}

/** Stores or replaces one secret. */
export async function upsertSecret(tx: Db, ref: SecretRef, secret: EncryptedSecret): Promise<void> {
  const value = { data_key_id: secret.dataKeyId, sealed: secret.ciphertext }
  await tx('secret')
    .insert({ ...toColumns(ref), name: secret.name, ...value })
    .onConflict(['owner_id', 'subject_type', 'subject_id', 'name'])
    .merge({ ...value, created_at: tx.fn.now() })
}

/** Removes the named secrets of a subject, or all of them. */
export async function deleteSecrets(tx: Db, ref: SecretRef, names?: readonly string[]): Promise<void> {
  const secrets = tx('secret').where(toColumns(ref))
  if (names !== undefined) secrets.whereRaw('name = any(?)', [[...names]])
  await secrets.delete()
}

/**
 * Crypto-shredding: deletes every secret of the owner and then its data keys, without which no copy in a backup opens.
 *
 * Stored responses of idempotent requests go too: they are encrypted under the same keys.
 */
export async function deleteSecretsAndKeys(tx: Db, ownerId: string): Promise<void> {
  for (const table of ['secret', 'idempotency_key', 'data_key']) await tx(table).where({ owner_id: ownerId }).delete()
}

function toColumns({ ownerId, subjectType, subjectId }: SecretRef) {
  return { owner_id: ownerId, subject_type: subjectType, subject_id: subjectId }
}

/** A wrapped data key of one owner (an environment, or a team). */
export interface DataKeyRecord {
  readonly id: string
  readonly keyEncryptionKeyId: string
  readonly wrapped: Uint8Array
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

/** One key under each key encryption key that is in use, with its owner. Reads the whole table, a row per environment. */
export async function listDataKeySamples(tx: Db): Promise<readonly (DataKeyRecord & { readonly ownerId: string })[]> {
  return await tx('data_key')
    .distinctOn('key_encryption_key_id')
    .orderBy(['key_encryption_key_id', 'id'])
    .select(...DATA_KEY, 'owner_id')
}

/** Stores a first key; of two simultaneous first keys one is stored (unique index data_key_current) and the other dropped. */
export async function insertDataKey(tx: Db, ownerId: string, key: DataKeyRecord): Promise<void> {
  await tx('data_key')
    .insert({ id: key.id, owner_id: ownerId, key_encryption_key_id: key.keyEncryptionKeyId, wrapped_key: key.wrapped })
    .onConflict(tx.raw('(owner_id) where is_current'))
    .ignore()
}
