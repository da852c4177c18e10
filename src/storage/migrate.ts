import type { Knex } from 'knex'
import { type Database, Tx } from './database.ts'
import { MIGRATIONS } from './migrations/index.ts'

/** Any constant: names the one migration lock of a database. */
const MIGRATION_LOCK = 727_064_101

/** What a migration run did. */
export interface MigrationReport {
  readonly applied: readonly string[]
}

/**
 * Brings the schema up to this version; safe when any number of processes start at once.
 *
 * All pending migrations run in one transaction under a transaction-level advisory lock: the first process migrates,
 * the others wait and find nothing to do, and a process that dies in between leaves the old schema and no stale lock.
 */
export async function migrate(database: Database): Promise<MigrationReport> {
  return await database.transaction(async (tx) => {
    const knex = Tx.knexOf(tx)
    await knex.raw('select pg_advisory_xact_lock(?)', [MIGRATION_LOCK])
    await knex.raw('set local statement_timeout = 0')
    const [, applied]: [number, string[]] = await knex.migrate.latest({
      migrationSource: source,
      disableTransactions: true,
    })
    return { applied }
  })
}

const source: Knex.MigrationSource<string> = {
  getMigrations: async () => MIGRATIONS.map(({ name }) => name),
  getMigrationName: (name) => name,
  getMigration: async (name) => {
    const found = MIGRATIONS.find((each) => each.name === name)
    if (found === undefined) throw new Error(`no migration named ${name}`)
    return found.migration
  },
}
