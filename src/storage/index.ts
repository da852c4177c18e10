/**
 * Where state lives: the connection pool, migrations, the embedded server and one file of documented statements per
 * table. Only this room knows Knex and pg; it returns records, never rows or query builders, and decides nothing.
 */
export { Database, type DatabaseOptions, type DatabaseTarget, type Tx } from './database.ts'
export {
  failureFromDatabase,
  isDatabaseUnavailable,
  isForeignKeyViolation,
  isUniqueViolation,
} from './database-errors.ts'
export { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from './embedded/index.ts'
export { type MigrationReport, migrate } from './migrate.ts'
export { createSecrets, type Secrets } from './secrets.ts'
export {
  claimIdempotencyKey,
  deleteOldIdempotencyKeys,
  findIdempotencyKey,
  type IdempotencyRecord,
  storeIdempotentAnswer,
} from './tables/idempotency-key.ts'
export type { SecretRef } from './tables/secret.ts'
