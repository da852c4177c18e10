/** A table whose rows come due, with an index (region, due). */
export interface DueTable {
  readonly table: string
  /** The columns of the primary key. */
  readonly key: readonly string[]
  /** When a row comes due. */
  readonly due: string
  /** SQL: what else holds of a row that may be claimed. */
  readonly condition?: string
}

/**
 * SQL of a query for the keys of due rows of `:regions`, locked, at most `:limit`: the region with the row that has been due the
 * longest first, within a region the longest due. Rows that another worker locks are passed over.
 *
 * Each region is a range of the index: what waits in a region without workers is not looked at. The regions after the first are
 * read only while the limit is not reached, so that no row is locked and then not taken.
 */
export function dueInRegionsSql({ table, key, due, condition = 'true' }: DueTable): string {
  const isDue = `region = served.region and ${due} <= now() and ${condition}`
  return `select ${key.map((column) => `due.${column}`).join(', ')} from (
      select served.region from unnest(:regions::text[]) as served (region)
      cross join lateral (select ${due} as at from ${table} where ${isDue} order by ${due} limit 1) head
      order by head.at
    ) served cross join lateral (
      select ${key.join(', ')} from ${table} where ${isDue} order by ${due} limit :limit::bigint for update skip locked
    ) due
    limit :limit::bigint`
}
