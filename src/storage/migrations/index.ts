import type { Knex } from 'knex'
import { RATE_LIMITS_SCHEMA } from './0001-initial/budgets.ts'
import { CONFIGURATION_SCHEMA } from './0001-initial/configuration.ts'
import { RUNS_SCHEMA } from './0001-initial/runs.ts'

/** Every migration, oldest first. Names are final once released; a new one is one file and one line here. */
export const MIGRATIONS: readonly { readonly name: string; readonly migration: Knex.Migration }[] = [
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
