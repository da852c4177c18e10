import { Failure } from '../base/errors.ts'
import type { Database, Db } from '../database/database.ts'
import type { SecretStore } from './secret-store.ts'
import { countSealed, countSealedUnder, listSealedUnder, replaceSealed, type SealedCount } from './sql/sealed-column.ts'

/** A data key that a newer one has replaced. */
export interface ReplacedKey {
  readonly ownerId: string
  readonly dataKeyId: string
}

/**
 * Values that are encrypted under data keys, of one column or of the object store. Everything that `encryptFor` makes and a
 * process stores belongs to one of these, or a rotation would leave it behind.
 */
export interface SealedValues {
  /** `table.column` */
  readonly name: string
  /** How many there are, by key encryption key. Reads all. */
  count(tx: Db): Promise<readonly SealedCount[]>
  /** How many there are under a data key. */
  countUnder(tx: Db, key: ReplacedKey): Promise<number>
  /**
   * Encrypts every value under a replaced key with the current one of its owner. Values that change meanwhile keep what was
   * written; those that cannot be read stay. It may be interrupted and repeated at any point.
   *
   * @param onPage called before each further page of values
   */
  reseal(database: Pick<Database, 'pool' | 'transaction'>, key: ReplacedKey, onPage: () => Promise<void>): Promise<void>
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

/** Values that are read and written in one round. */
export const RESEAL_PAGE = 200

/** The values of a column. */
export function sealedColumn(
  secrets: Pick<SecretStore, 'encryptFor' | 'decryptFor'>,
  column: SealedColumn,
): SealedValues {
  return {
    name: `${column.table}.${column.column}`,
    count: (tx) => countSealed(tx, column),
    countUnder: (tx, key) => countSealedUnder(tx, column, key),
    async reseal({ pool }, key, onPage) {
      for (let after: string | undefined; ; ) {
        const rows = await listSealedUnder(pool, column, key, after, RESEAL_PAGE)
        for (const row of rows) {
          const sealed = await resealed(secrets, pool, key.ownerId, row.sealed, column.associatedData(row.id))
          if (sealed !== undefined) await replaceSealed(pool, column, key.ownerId, row, sealed)
        }
        if (rows.length < RESEAL_PAGE) return
        after = rows.at(-1)?.id
        await onPage()
      }
    },
  }
}

/**
 * A value encrypted with the owner's current key; `undefined` when it cannot be read.
 *
 * @param next associated data of the result, when it is to be stored elsewhere
 */
export async function resealed(
  secrets: Pick<SecretStore, 'encryptFor' | 'decryptFor'>,
  tx: Db,
  ownerId: string,
  sealed: Uint8Array,
  associatedData: string,
  next = associatedData,
): Promise<Uint8Array | undefined> {
  const bytes = await secrets.decryptFor(tx, ownerId, associatedData, sealed).catch(undefinedIfUnreadable)
  return bytes === undefined ? undefined : await secrets.encryptFor(tx, ownerId, next, bytes)
}

/** For `catch`: rethrows everything but SECRET_UNREADABLE. */
export function undefinedIfUnreadable(error: unknown): undefined {
  if (error instanceof Failure && error.reason === 'SECRET_UNREADABLE') return undefined
  throw error
}
