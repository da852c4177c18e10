import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Database } from './database.ts'
import { isLockTimeout } from './errors.ts'

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
}

/** Any constant: the advisory lock that serializes migrations of a database. */
const MIGRATION_LOCK = 727_064_101

/**
 * Lock timeout of a statement that waits for a table in use: later statements queue behind it. Then everything is rolled
 * back, which lets them pass, and tried again.
 */
const DDL_LOCK_TIMEOUT = '3s'
const ATTEMPTS_MAX = 20

/** The names of the migrations that were applied. */
export interface MigrationReport {
  readonly applied: readonly string[]
}

/**
 * Brings the schema up to this version; safe when any number of processes start at once.
 *
 * All pending migrations run in one transaction under a transaction-level advisory lock: the first process migrates, the
 * others wait however long that takes and find nothing to do, and a process that dies in between leaves the old schema and
 * no stale lock.
 *
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
    const [, applied]: [number, string[]] = await tx.migrate.latest({ migrationSource, disableTransactions: true })
    return { applied }
  })
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
