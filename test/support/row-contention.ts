import { query, queryOne } from '../../src/database/database.ts'
import type { Database } from '../../src/database/index.ts'

const LOOKS_MAX = 10_000

/**
 * Makes several pieces of work collide: holds the locks of rows until all of the works wait for one, then lets them go.
 *
 * @param table has a column `id`
 */
export async function contendForRows<Result>(
  database: Database,
  table: string,
  ids: readonly string[],
  works: readonly (() => Promise<Result>)[],
): Promise<readonly PromiseSettledResult<Result>[]> {
  const { outcome } = await database.transaction(async (tx) => {
    await query(tx, `select from ${table} where id = any(?) for update`, [ids])
    const outcome = Promise.allSettled(works.map((work) => work()))
    for (let looks = 0; (await waiting(database)) < works.length; looks++)
      if (looks === LOOKS_MAX) throw new Error('the works never met at the lock')
    return { outcome }
  })
  return await outcome
}

async function waiting(database: Database): Promise<number> {
  const sql = `select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  return (await queryOne<{ n: number }>(database.pool, sql))?.n ?? 0
}
