import type { Knex } from 'knex'
import type { Tx } from './database.ts'

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
export function nextVersion(tx: Tx): Readonly<{ updated_at: Knex.Raw; version: Knex.Raw }> {
  return { updated_at: tx.fn.now(), version: tx.raw('version + 1') }
}
