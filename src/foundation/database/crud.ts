import type { Knex } from 'knex'
import { type Db, execute } from './database.ts'

/** One keyset page of a list that is ordered by id alone, newest first. */
export interface IdPage {
  /** The id of the last item of the page before; absent for the first page. */
  readonly before?: string | undefined
  readonly limit: number
}

/** Query fragment for `.modify()`: one keyset page by descending id, which is newest first since ids are UUIDv7. */
export function newestFirst(builder: Knex.QueryBuilder, { before, limit }: IdPage): void {
  if (before !== undefined) builder.where('id', '<', before)
  builder.orderBy('id', 'desc').limit(limit)
}

/** Query fragment for `.modify()`: optimistic locking, only when the caller sent the version (etag) it has read. */
export function whereVersion(builder: Knex.QueryBuilder, version: number | undefined): void {
  if (version !== undefined) builder.where({ version })
}

/** What every update of a versioned row also sets: the time, and the next version. */
export function nextVersion(tx: Db): Readonly<{ updated_at: Knex.Raw; version: Knex.Raw }> {
  return { updated_at: tx.fn.now(), version: tx.raw('version + 1') }
}

/** Rows of one table that a deletion of an environment deletes per statement. */
const DELETE_BATCH = 5_000

/**
 * Deletes rows of an environment from the tables in their order, at most a batch of one of them but for those that hold less;
 * returns whether all are empty now. Of a partitioned table a few more may go: a row's address occurs in each partition.
 */
export async function deleteBatchOfEnvironment(
  tx: Db,
  tables: readonly string[],
  environmentId: string,
): Promise<boolean> {
  for (const table of tables) {
    const deleted = await execute(
      tx,
      `delete from ${table} where environment_id = :environmentId and ctid = any(array(
         select ctid from ${table} where environment_id = :environmentId limit ${DELETE_BATCH}))`,
      { environmentId },
    )
    if (deleted >= DELETE_BATCH) return false
  }
  return true
}
