import type { Knex } from 'knex'
import { BUDGETS } from './0001-initial/budgets.ts'
import { CONFIGURATION } from './0001-initial/configuration.ts'
import { RUNS } from './0001-initial/runs.ts'

/** Every migration, oldest first. Names are final once released; a new one is one file and one line here. */
export const MIGRATIONS: readonly { readonly name: string; readonly migration: Knex.Migration }[] = [
  { name: '0001-initial', migration: migrationOf([...CONFIGURATION, ...RUNS, ...BUDGETS]) },
]

/** The statements one after the other. Nothing undoes them: a restored backup is the way back. */
function migrationOf(statements: readonly string[]): Knex.Migration {
  return {
    async up(knex) {
      for (const statement of statements) await knex.raw(statement)
    },
    down: () => Promise.reject(new Error('a migration is not undone: restore a backup')),
  }
}
