import { type Db, execute, query, queryOne } from '../../database/database.ts'

/** How many values there are, by where they are and what wraps their data key; null: their data key is gone. */
export interface SealedCount {
  readonly keyEncryptionKeyId: string | null
  /** In the database. */
  readonly rows: number
  /** In the object store. */
  readonly objects: number
}

type ColumnPlace = Pick<SealedColumn, 'table' | 'column' | 'owner' | 'id'>

/** SQL: the first 16 bytes of a sealed value are the id of its data key. */
function underKey(column: string, dataKeyId: string): string {
  return `substring(${column} from 1 for 16) = uuid_send(${dataKeyId})`
}

/** Counts the values of a column. Reads the whole table. */
export async function countSealed(tx: Db, { table, column }: ColumnPlace): Promise<readonly SealedCount[]> {
  return await query(
    tx,
    `select key_encryption_key_id, count(*) as rows, 0 as objects
     from ${table} sealed left join data_key on ${underKey(`sealed.${column}`, 'data_key.id')}
     where ${column} is not null group by 1`,
  )
}

/** Counts the secrets. Reads the whole table. */
export async function countSealedSecrets(tx: Db): Promise<readonly SealedCount[]> {
  return await query(
    tx,
    `select key_encryption_key_id, count(*) as rows, 0 as objects
     from secret join data_key on data_key.id = secret.data_key_id group by 1`,
  )
}

/** A sealed value and the id of its row. */
export interface SealedRow {
  readonly id: string
  readonly sealed: Uint8Array
}

/** Values of the owner under a data key, in the order of their ids, after the given one. */
export async function listSealedUnder(
  tx: Db,
  { table, column, owner, id }: ColumnPlace,
  key: { readonly ownerId: string; readonly dataKeyId: string },
  after: string | undefined,
  limit: number,
): Promise<readonly SealedRow[]> {
  return await query(
    tx,
    `select ${id} as id, ${column} as sealed from ${table}
     where ${owner} = :ownerId and ${underKey(column, ':dataKeyId::uuid')} and (:after::uuid is null or ${id} > :after)
     order by ${id} limit :limit`,
    { ...key, after: after ?? null, limit },
  )
}

/** Replaces a value, unless it has changed meanwhile. */
export async function replaceSealed(
  tx: Db,
  { table, column, owner, id }: ColumnPlace,
  ownerId: string,
  row: SealedRow,
  resealed: Uint8Array,
): Promise<void> {
  await execute(
    tx,
    `update ${table} set ${column} = :resealed where ${owner} = :ownerId and ${id} = :id and ${column} = :sealed`,
    { ownerId, id: row.id, sealed: row.sealed, resealed },
  )
}

/** How many values of the owner are under a data key. */
export async function countSealedUnder(
  tx: Db,
  { table, column, owner }: ColumnPlace,
  key: { readonly ownerId: string; readonly dataKeyId: string },
): Promise<number> {
  const row = await queryOne<{ count: number }>(
    tx,
    `select count(*) from ${table} where ${owner} = :ownerId and ${underKey(column, ':dataKeyId::uuid')}`,
    key,
  )
  return row?.count ?? 0
}

/** A column that holds what `encryptFor` made, of rows with an owner and an id. */
export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** Column with the owner of the data key. */
  readonly owner: string
  /** Column that names the row within its owner, a uuid. */
  readonly id: string
  /** The associated data of a row's value. */
  readonly associatedData: (id: string) => string
}
