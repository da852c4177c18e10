import { type Db, execute, query, queryOne } from '../../database/database.ts'

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
 * Crypto-shredding: deletes every secret of the owner and then its data keys, without which nothing that is left of its values
 * in this database or in the object store opens.
 *
 * A backup of the database has the data keys too: its copies open for as long as the key encryption key that wrapped them is
 * kept somewhere. Stored responses of idempotent requests go too: they are encrypted under the same keys.
 */
export async function deleteSecretsAndKeys(tx: Db, ownerId: string): Promise<void> {
  for (const table of ['secret', 'idempotency_key', 'data_key']) await tx(table).where({ owner_id: ownerId }).delete()
}

function toColumns({ ownerId, subjectType, subjectId }: SecretRef) {
  return { owner_id: ownerId, subject_type: subjectType, subject_id: subjectId }
}

/** A secret with its place. */
export interface PlacedSecret extends SecretRef, EncryptedSecret {}

/**
 * Secrets of the owner under a data key, in the order of the primary key, after the given one. Uses the primary key.
 */
export async function listSecretsUnder(
  tx: Db,
  { ownerId, dataKeyId }: { readonly ownerId: string; readonly dataKeyId: string },
  after: Pick<PlacedSecret, 'subjectType' | 'subjectId' | 'name'> | undefined,
  limit: number,
): Promise<readonly PlacedSecret[]> {
  return await query(
    tx,
    `select owner_id, subject_type, subject_id, name, data_key_id, sealed as ciphertext from secret
     where owner_id = :ownerId and data_key_id = :dataKeyId
       and (:subjectType::text is null or (subject_type, subject_id, name) > (:subjectType, :subjectId::uuid, :name))
     order by subject_type, subject_id, name limit :limit`,
    {
      ownerId,
      dataKeyId,
      subjectType: after?.subjectType ?? null,
      subjectId: after?.subjectId ?? null,
      name: after?.name ?? null,
      limit,
    },
  )
}

/** Replaces the ciphertext of a secret, unless it has changed meanwhile. Uses the primary key. */
export async function replaceSealedSecret(
  tx: Db,
  { ownerId, subjectType, subjectId, name, ciphertext }: PlacedSecret,
  resealed: Pick<EncryptedSecret, 'dataKeyId' | 'ciphertext'>,
): Promise<void> {
  await execute(
    tx,
    `update secret set data_key_id = :dataKeyId, sealed = :resealed
     where owner_id = :ownerId and subject_type = :subjectType and subject_id = :subjectId and name = :name
       and sealed = :sealed`,
    {
      ownerId,
      subjectType,
      subjectId,
      name,
      sealed: ciphertext,
      dataKeyId: resealed.dataKeyId,
      resealed: resealed.ciphertext,
    },
  )
}

/** How many secrets of the owner are under a data key. Uses secret_data_key. */
export async function countSecretsUnder(tx: Db, dataKeyId: string): Promise<number> {
  const row = await queryOne<{ count: number }>(tx, 'select count(*) from secret where data_key_id = :dataKeyId', {
    dataKeyId,
  })
  return row?.count ?? 0
}
