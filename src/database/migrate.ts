import type { Knex } from 'knex'
import type { Database } from './database.ts'
import { isLockTimeout } from './errors.ts'
import { CONFIGURATION_SCHEMA } from './migrations/0001-configuration.ts'
import { RATE_LIMITS_SCHEMA } from './migrations/0001-rate-limits.ts'
import { RUNS_SCHEMA } from './migrations/0001-runs.ts'

/** Any constant: names the one migration lock of a database. */
const MIGRATION_LOCK = 727_064_101

/**
 * Longest wait of a statement for a table that others use: later statements queue behind it. Then everything is rolled
 * back, which lets them pass, and tried again.
 */
const DDL_LOCK_TIMEOUT = '3s'
const ATTEMPTS_MAX = 20

/** What a migration run did. */
export interface MigrationReport {
  readonly applied: readonly string[]
}

/**
 * Brings the schema up to this version; safe when any number of processes start at once.
 *
 * All pending migrations run in one transaction under a transaction-level advisory lock: the first process migrates,
 * the others wait however long that takes and find nothing to do, and a process that dies in between leaves the old schema
 * and no stale lock.
 *
 * @throws an error that `isLockTimeout` knows when tables stay in use for a minute
 */
export async function migrate(database: Database): Promise<MigrationReport> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await migrateOnce(database)
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isLockTimeout(error)) throw error
    }
  }
}

async function migrateOnce(database: Database): Promise<MigrationReport> {
  return await database.transaction(async (tx) => {
    await tx.raw('set local statement_timeout = 0')
    await tx.raw('set local lock_timeout = 0')
    await tx.raw('select pg_advisory_xact_lock(?)', [MIGRATION_LOCK])
    await tx.raw(`set local lock_timeout = '${DDL_LOCK_TIMEOUT}'`)
    const [, applied]: [number, string[]] = await tx.migrate.latest({
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

/** Every migration, oldest first. Names are final once released; a new one is one file and one line here. */
const MIGRATIONS: readonly { readonly name: string; readonly migration: Knex.Migration }[] = [
  { name: '0001-initial', migration: toMigration([...CONFIGURATION_SCHEMA, ...RUNS_SCHEMA, ...RATE_LIMITS_SCHEMA]) },
]

/** The statements one after the other. Nothing undoes them: a restored backup is the way back. */
function toMigration(statements: readonly string[]): Knex.Migration {
  return {
    async up(knex) {
      for (const statement of statements) await knex.raw(statement)
    },
    down: () => Promise.reject(new Error('a migration is not undone: restore a backup')),
  }
}
