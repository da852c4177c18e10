import type { Db } from '../database/database.ts'
import { RESEAL_PAGE, type SealedValues, type SecretStore, undefinedIfUnreadable } from './secret-store.ts'
import {
  countSealed,
  countSealedUnder,
  listSealedUnder,
  replaceSealed,
  type SealedColumn,
} from './sql/sealed-column.ts'

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
