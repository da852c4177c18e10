import type { Database } from '../../src/foundation/database/index.ts'
import { query, queryOne } from '../../src/foundation/database/index.ts'

const LOOKS_MAX = 10_000

/**
 * Runs several transactions that contend for rows: holds the locks of the rows until each of them waits for one, then
 * releases them.
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
    await query(tx, `select from ${table} where id = any(:ids) for update`, { ids })
    const outcome = Promise.allSettled(works.map((work) => work()))
    for (let looks = 0; (await waiting(database)) < works.length; looks++)
      if (looks === LOOKS_MAX) throw new Error('the transactions did not all wait for a lock')
    return { outcome }
  })
  return await outcome
}

async function waiting(database: Database): Promise<number> {
  const sql = `select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  return (await queryOne<{ n: number }>(database.pool, sql))?.n ?? 0
}
