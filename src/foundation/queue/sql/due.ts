import { type Db, execute, query } from '../../database/database.ts'
import type { SqlParameters } from '../../database/prepared-statements.ts'
import { REGIONS } from '../regions.ts'

/**
 * The right of one worker to do something, until it expires, another worker takes over or it is settled. Its id is the fence of
 * every write of its holder.
 */
export type Lease<Work> = Work & { readonly leaseId: string }

/** A table whose rows come due, with an index (region, due). */
export interface DueTable<Work extends object> {
  readonly table: string
  /**
   * The columns that a lease has, as they are after the claim. By `attempts` the claims since the last success are counted; by
   * `requested`, how often a row was made due: one that was since its claim is due at once when the lease ends.
   */
  readonly columns: Readonly<Record<keyof Work & string, string>>
  /** Those of the primary key. */
  readonly key: readonly (keyof Work & string)[]
  /** When a row comes due. While it is leased, when the lease expires, unless that has a column of its own. */
  readonly due: string
  /** Column with the id of the lease. Absent: the number of attempts is the fence, which nothing may reduce then. */
  readonly leaseId?: string
  /** Column with the end of the lease. */
  readonly leaseEnd?: string
  /** SQL: what else holds of a row that may be claimed. */
  readonly condition?: string
  /** SQL: what else a claim sets; `item` is the row before. */
  readonly onClaim?: string
}

/** A claim of due rows. */
export interface DueClaim {
  readonly leaseId: string
  readonly leaseMs: number
  /** Only rows of these regions; absent: all. */
  readonly regions?: readonly string[] | undefined
  readonly limit: number
}

/** How a lease ends. */
export interface DueSettlement {
  /** The row is deleted, unless it was made due again since the claim. */
  readonly isDone?: boolean
  /** Until the row is due again; null: it is not; `undefined`: `due` stays, of a table where it is not the end of the lease. */
  readonly delayMs?: number | null
  /** Attempts so far. Absent: all that were claimed. */
  readonly attempts?: number
  /** SQL: what else is set, with the values of its placeholders. */
  readonly set?: string
  readonly values?: SqlParameters
}

/**
 * SQL of a query for the keys of due rows of `:regions`, locked, at most `:limit`: the region with the row that has been due the
 * longest first, within a region the longest due. Rows that another worker locks are passed over.
 *
 * Each region is a range of the index: what waits in a region without workers is not looked at. The regions after the first are
 * read only while the limit is not reached, so that no row is locked and then not taken.
 */
export function dueInRegionsSql(
  { table, due, condition = 'true' }: Pick<DueTable<object>, 'table' | 'due' | 'condition'>,
  key: readonly string[],
): string {
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

/**
 * Leases the rows that have been due the longest. Workers claim concurrently: rows that another one locks are skipped. Uses the
 * due index of the table.
 */
export async function claimDue<Work extends object>(
  tx: Db,
  table: DueTable<Work>,
  { leaseId, leaseMs, regions = REGIONS, limit }: DueClaim,
): Promise<readonly Lease<Work>[]> {
  const rows = await query<Work>(tx, claimSql(table), { leaseId, leaseMs, regions, limit })
  return rows.map((row) => ({ ...row, leaseId }))
}

/** Writes while the lease is held; returns whether it is. Uses the primary key. @param set SQL, with the values of its placeholders */
export async function updateHeld<Work extends object>(
  tx: Db,
  table: DueTable<Work>,
  lease: Lease<Work>,
  set: string,
  values: SqlParameters = {},
): Promise<boolean> {
  return (await execute(tx, `update ${table.table} set ${set} where ${heldSql(table)}`, under(lease, values))) > 0
}

/** Ends a lease; returns whether it was held. Uses the primary key. */
export async function settleDue<Work extends object>(
  tx: Db,
  table: DueTable<Work>,
  lease: Lease<Work>,
  { isDone = false, delayMs, set, values, ...settlement }: DueSettlement,
): Promise<boolean> {
  const { leaseId, leaseEnd, due } = table
  const { attempts, requested }: Readonly<Record<string, string>> = table.columns
  const later = `now() + :delayMs::double precision * interval '1 millisecond'`
  const isAskedFor = requested === undefined ? 'false' : `${requested} <> :requested`
  if (isDone)
    return (
      (await execute(tx, `delete from ${table.table} where ${heldSql(table)} and not ${isAskedFor}`, under(lease))) > 0
    )
  // Cut to the milliseconds of the column: rounded, it could be in the future.
  const dueAt = `date_trunc('milliseconds', case when ${isAskedFor} then now() else ${later} end)`
  const assignments = [
    ...(leaseId === undefined ? [] : [`${leaseId} = null`]),
    ...(leaseEnd === undefined ? [] : [`${leaseEnd} = null`]),
    ...(delayMs === undefined ? [] : [`${due} = ${dueAt}`]),
    ...(attempts === undefined ? [] : [`${attempts} = case when ${isAskedFor} then 0 else :attempts end`]),
    ...(set === undefined ? [] : [set]),
  ]
  return await updateHeld(tx, table, lease, assignments.join(', '), {
    delayMs: delayMs ?? null,
    ...settlement,
    ...values,
  })
}

function claimSql<Work extends object>({
  table,
  columns,
  key,
  due,
  leaseId,
  leaseEnd,
  ...rest
}: DueTable<Work>): string {
  const { condition = 'true', onClaim } = rest
  const { attempts }: Readonly<Record<string, string>> = columns
  const isFree = leaseEnd === undefined ? '' : `and (${leaseId} is null or ${leaseEnd} <= now())`
  const keyColumns = key.map((name) => columns[name])
  const dueRows = dueInRegionsSql({ table, due, condition: `${condition} ${isFree}` }, keyColumns)
  const assignments = [
    ...(leaseId === undefined ? [] : [`${leaseId} = :leaseId`]),
    `${leaseEnd ?? due} = now() + :leaseMs * interval '1 millisecond'`,
    ...(attempts === undefined ? [] : [`${attempts} = item.${attempts} + 1`]),
    ...(onClaim === undefined ? [] : [onClaim]),
  ]
  return `with due as materialized (${dueRows})
     update ${table} item set ${assignments.join(', ')}
     from due where ${keyColumns.map((column) => `item.${column} = due.${column}`).join(' and ')}
     returning ${Object.entries(columns)
       .map(([name, column]) => `item.${column} as "${name}"`)
       .join(', ')}`
}

/** SQL: the row of a lease that is held. */
function heldSql<Work extends object>({ columns, key, leaseId }: DueTable<Work>): string {
  const { attempts }: Readonly<Record<string, string>> = columns
  const fence = leaseId === undefined ? `${attempts} = :attempts` : `${leaseId} = :leaseId`
  return [...key.map((name) => `${columns[name]} = :${name}`), fence].join(' and ')
}

/** The placeholders of a statement under a lease: its own values, and those of the lease by name. */
function under(lease: Lease<object>, values?: SqlParameters): SqlParameters {
  return { ...(lease as unknown as SqlParameters), ...values }
}
