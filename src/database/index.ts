/**
 * Where state lives: the connection pool, migrations, the embedded server and one file of documented statements per
 * table. Only this room knows Knex and pg; it returns records, never rows or query builders, and decides nothing.
 */

export { type IdPage, newestFirst, nextVersion, whereVersion } from './crud.ts'
export { createDataDirectory, DataDirectoryLock } from './data-directory.ts'
export {
  Database,
  type DatabaseOptions,
  type DatabaseTarget,
  execute,
  jsonb,
  query,
  queryOne,
  type Tx,
} from './database.ts'
export { type EmbeddedServer, startEmbeddedServer } from './embedded-server.ts'
export {
  isDatabaseUnavailable,
  isDataError,
  isForeignKeyViolation,
  isLockTimeout,
  isStatementTimeout,
  isUniqueViolation,
  logLoopErrors,
  mapDatabaseError,
  mapForeignKeyToInUse,
} from './errors.ts'
export { DatabaseHealthCheck, readServerVersion } from './health-check.ts'
export {
  decodeIdPageToken,
  decodePageToken,
  type ListPage,
  type ListPageRequest,
  type PageCursor,
  readPageSize,
  toPage,
} from './keyset-pages.ts'
export { migrate } from './migrate.ts'
export type { SqlParameters, SqlValue } from './prepared-statements.ts'
