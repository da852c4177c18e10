/**
 * PostgreSQL: connection pool, transactions, raw and CRUD statements, keyset pages, tables partitioned by day, migrations, the embedded server.
 *
 * Lives here: everything that no resource owns. Never here: a statement of a resource, which is in its module's `sql` files.
 */

export {
  type DatabaseTarget,
  DatabaseUrlError,
  driverConfig,
  parseDatabaseUrl,
  tlsAdvice,
} from './connection-address.ts'
export { deleteBatchOfEnvironment, type IdPage, newestFirst, nextVersion, whereVersion } from './crud.ts'
export { createDataDirectory, DataDirectoryLock } from './data-directory.ts'
export {
  Database,
  type DatabaseOptions,
  type Db,
  execute,
  jsonb,
  type Pool,
  query,
  queryForValues,
  queryOne,
  SERVER_VERSION_MIN,
  type Tx,
} from './database.ts'
export type { DayTable } from './day-partition.ts'
export { createComingDays, type DayRetentionDeps, dropOldDays } from './day-retention.ts'
export {
  type EmbeddedServer,
  quitEmbeddedServer,
  retireOrphanedDatabases,
  startEmbeddedServer,
} from './embedded-server.ts'
export {
  isDatabaseUnavailable,
  isDataError,
  isForeignKeyViolation,
  isRetryable,
  isUniqueViolation,
  logLoopErrors,
  mapDatabaseError,
  mapForeignKeyToInUse,
} from './errors.ts'
export { DatabaseHealthCheck, readServerState } from './health-check.ts'
export {
  countFitting,
  decodePageToken,
  encodePageToken,
  type ListPage,
  type ListPageRequest,
  listQuery,
  type PageCursor,
  pageById,
  pageByIdWithin,
  readPageSize,
  toPage,
} from './keyset-pages.ts'
export { migrate, SchemaError } from './migrate.ts'
export type { SqlParameters } from './prepared-statements.ts'
export { findDatabaseProblem, isSqlState, sqlState } from './problems.ts'
export { OWNED, rowSet } from './row-set.ts'
