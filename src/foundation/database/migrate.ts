import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { type Database, queryOne, type Tx } from './database.ts'
import { isLockTimeout } from './errors.ts'
import { sqlState } from './problems.ts'

/** Every migration, oldest first: its name, which is final once released, and its files in `migrations/`. */
const MIGRATIONS: Readonly<Record<string, readonly string[]>> = {
  '0001-initial': ['0001-day-partitions.sql', '0001-configuration.sql', '0001-runs.sql', '0001-rate-limits.sql'],
  '0002-connect': [
    '0002-events.sql',
    '0002-link-sessions.sql',
    '0002-accounts.sql',
    '0002-branding.sql',
    '0002-context-objects.sql',
  ],
  '0003-webhooks': [
    '0003-deliveries.sql',
    '0003-inbound.sql',
    '0003-tasks.sql',
    '0003-subscriptions.sql',
    '0003-sync-hints.sql',
  ],
  '0004-unified': ['0004-unified.sql', '0004-tool-servers.sql'],
  '0005-catalog': ['0005-catalog.sql'],
  '0005-accounts': ['0005-accounts.sql'],
  '0005-run-waits': ['0005-run-waits.sql'],
  '0006-link-credentials': ['0006-link-credentials.sql'],
  '0006-subscription-requests': ['0006-subscription-requests.sql'],
  '0007-dispatch-turns': ['0007-dispatch-turns.sql'],
  '0007-due-times': ['0007-due-times.sql'],
  '0011-deletions': ['0011-deletions.sql'],
  '0012-account-signals': ['0012-account-signals.sql'],
  '0012-list-filters': ['0012-list-filters.sql'],
  '0012-due-in-regions': ['0012-due-in-regions.sql'],
  '0014-webhook-announcements': ['0014-webhook-announcements.sql'],
  '0013-deletions': ['0013-deletions.sql'],
  '0017-context-lookup': ['0017-context-lookup.sql'],
  '0015-moved-hosts': ['0015-moved-hosts.sql'],
  '0020-token-scopes': ['0020-token-scopes.sql'],
  '0021-keys': ['0021-keys.sql'],
  '0022-call-log': ['0022-call-log.sql'],
  '0024-audit': ['0024-audit.sql'],
  '0025-access-tokens': ['0025-access-tokens.sql'],
  '0027-key-order': ['0027-key-order.sql'],
  '0028-shared-grants': ['0028-shared-grants.sql'],
  '0029-give-up-after': ['0029-give-up-after.sql'],
  '0030-event-bytes': ['0030-event-bytes.sql'],
  '0031-token-history': ['0031-token-history.sql'],
  '0032-call-log-content': ['0032-call-log-content.sql'],
  '0033-call-log-request': ['0033-call-log-request.sql'],
  '0034-call-log-filters': ['0034-call-log-filters.sql'],
  '0035-call-log-drops': ['0035-call-log-drops.sql'],
  '0036-figures': ['0036-figures.sql'],
}

/** Any constant: the advisory lock that serializes migrations of a database. */
const MIGRATION_LOCK = 727_064_101

/**
 * Lock timeout of a statement that waits for a table in use: later statements queue behind it. Then everything is rolled
 * back, which lets them pass, and tried again.
 */
const DDL_LOCK_TIMEOUT = '3s'
const ATTEMPTS_MAX = 20

/** Names what this program has applied; a table of its own, since others that use the same library have `knex_migrations`. */
const MIGRATION_TABLE = 'patchbay_migrations'
/** Where it was before. */
const FORMER_TABLE = 'knex_migrations'
/** What every version has applied first. */
const FIRST_MIGRATION = '0001-initial'
/** SQLSTATEs of a table, an object or a function that exists already. */
const ALREADY_EXISTS = new Set(['42P07', '42710', '42723'])
const INSUFFICIENT_PRIVILEGE = '42501'

/** The names of the migrations that were applied. */
export interface MigrationReport {
  readonly applied: readonly string[]
}

/** A database whose schema cannot be brought up to this version. The message completes the name of the database: what is wrong, and what to do. */
export class SchemaError extends Error {}

/**
 * Brings the schema up to this version; safe when any number of processes start at once.
 *
 * All pending migrations run in one transaction under a transaction-level advisory lock: the first process migrates, the
 * others wait however long that takes and find nothing to do, and a process that dies in between leaves the old schema and
 * no stale lock.
 *
 * @throws SchemaError when the database is of a newer version or of another program, or the role may not change it
 * @throws an error that `isLockTimeout` recognizes when tables stay in use for a minute
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
    let isNew = false
    try {
      const found = await readSchema(tx)
      const names = await appliedNames(tx, found)
      assertMigratable(found, names)
      isNew = names.length === 0
      if (!found.hasTable && !isNew) await renameFormerTables(tx)
      const config = { migrationSource, disableTransactions: true, tableName: MIGRATION_TABLE }
      const [, applied]: [number, string[]] = await tx.migrate.latest(config)
      return { applied }
    } catch (error) {
      throw schemaErrorOf(error, isNew) ?? error
    }
  })
}

/** What is found before anything is changed. */
interface FoundSchema {
  readonly hasTable: boolean
  /** A table `knex_migrations` beside tables that are named as those of this program. */
  readonly hasFormerTable: boolean
  /** Another schema with the tables of this program. */
  readonly elsewhere: string | null
  readonly role: string
  readonly schema: string | null
  readonly mayCreate: boolean
}

const SCHEMA_SQL = `select to_regclass('${MIGRATION_TABLE}') is not null as has_table,
  to_regclass('${FORMER_TABLE}') is not null and to_regclass('environment_integration') is not null as has_former_table,
  (select min(n.nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.relname = 'environment_integration' and c.relkind = 'r' and not pg_table_is_visible(c.oid)) as elsewhere,
  current_user as role, current_schema() as schema,
  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as may_create`

async function readSchema(tx: Tx): Promise<FoundSchema> {
  const found = await queryOne<FoundSchema>(tx, SCHEMA_SQL)
  if (found === undefined) throw new Error('no row of the schema')
  return found
}

/** The migrations that this program has applied, by its table or, before it had one, by the shared one where that is its own. */
async function appliedNames(tx: Tx, { hasTable, hasFormerTable }: FoundSchema): Promise<readonly string[]> {
  if (!hasTable && !hasFormerTable) return []
  const names: string[] = await tx(hasTable ? MIGRATION_TABLE : FORMER_TABLE).pluck('name')
  return hasTable || names.includes(FIRST_MIGRATION) ? names : []
}

/** @throws SchemaError */
function assertMigratable({ elsewhere, role, schema, mayCreate }: FoundSchema, names: readonly string[]): void {
  const newer = names.filter((name) => MIGRATIONS[name] === undefined)
  if (newer.length > 0)
    throw new SchemaError(
      `was written by a newer version of Patchbay (${newer.join(', ')}): start that version, or restore the copy from before the upgrade`,
    )
  // A schema of its own, by the role or by the address, is meant: another installation has the other one.
  if (names.length === 0 && elsewhere !== null && schema === 'public')
    throw new SchemaError(
      `has the tables of Patchbay in the schema ${elsewhere}, which its connections do not look into: rename it to ${role}, or add ?options=-c%20search_path%3D${elsewhere} to the address`,
    )
  if (names.length === Object.keys(MIGRATIONS).length || mayCreate) return
  throw new SchemaError(
    schema === null
      ? `has neither a schema public nor one named ${role}: CREATE SCHEMA ${role} AUTHORIZATION ${role}`
      : `does not let the role ${role} create tables in the schema ${schema}: GRANT CREATE ON SCHEMA ${schema} TO ${role}, or CREATE SCHEMA ${role} AUTHORIZATION ${role}`,
  )
}

async function renameFormerTables(tx: Tx): Promise<void> {
  for (const suffix of ['', '_lock'])
    await tx.raw('alter table if exists ?? rename to ??', [FORMER_TABLE + suffix, MIGRATION_TABLE + suffix])
}

/** @param isNew whether the database had no table of this program before */
function schemaErrorOf(error: unknown, isNew: boolean): SchemaError | undefined {
  const code = sqlState(error)
  // The statement stands before what the server said.
  const said = error instanceof Error ? error.message.replace(/^.* - /s, '') : ''
  if (isNew && ALREADY_EXISTS.has(code))
    return new SchemaError(
      `has tables of another program (${said}): name a database, or a role with a schema, of its own`,
    )
  if (code === INSUFFICIENT_PRIVILEGE)
    return new SchemaError(`does not let its role change the tables (${said}): run patchbay migrate as their owner`)
  return undefined
}

const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => Object.keys(MIGRATIONS),
  getMigrationName: (name) => name,
  getMigration: async (name) => {
    const files = MIGRATIONS[name]
    if (files === undefined) throw new Error(`no migration named ${name}`)
    return {
      async up(tx) {
        for (const file of files) await tx.raw(readFileSync(join(import.meta.dirname, 'migrations', file), 'utf8'))
      },
      // A restored backup is the way back.
      down: () => Promise.reject(new Error('a migration is not undone: restore a backup')),
    }
  },
}
