import type { Send } from './describe-once.ts'

/** Waiting for a lock occupies a connection of the pool: it ends well before the statement timeout. */
const LOCK_TIMEOUT_MS = 10_000
/** A transaction whose client has stalled (SIGSTOP, a blocked event loop) loses its row locks after this long. */
const IDLE_IN_TRANSACTION_MS = 15_000

/**
 * What statements and the readers of their results take for granted, whatever the settings of the role and the database are.
 * Not `default_transaction_read_only`, by which an operator or a provider whose disk is nearly full stops writes: it is reported.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  bytea_output: 'hex',
  // The shortest text that is read as the same number.
  extra_float_digits: '1',
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  row_security: 'on',
  lock_timeout: String(LOCK_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
  // Of connections that wait in the pool, and of transactions whose statements are all limited.
  idle_session_timeout: '0',
  transaction_timeout: '0',
}

/** What waits for less than the disk loses what was confirmed; what waits for standbys too is the operator's choice. */
const COMMIT_SQL = `select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`

/** The default of PostgreSQL. */
const SEARCH_PATH = '"$user", public'

/** How a session differs from others. */
export interface SessionOptions {
  readonly statementTimeoutMs: number
  /** `options` of the address, which may name another search path than the default. */
  readonly startupOptions: string | undefined
}

/**
 * Sets what the product needs of a session, in one statement when a connection is opened: poolers such as PgBouncer reject most
 * of these as parameters of the startup.
 */
export async function prepareSession(raw: object, options: SessionOptions): Promise<void> {
  const { query } = raw as { query: Send }
  await new Promise<void>((resolve, reject) => {
    query.call(raw, sessionSql(options), (error: Error | null) => (error === null ? resolve() : reject(error)))
  })
}

/** A server that does not know a setting, since it is older, has none to set. */
function sessionSql({ statementTimeoutMs, startupOptions = '' }: SessionOptions): string {
  const settings = {
    ...SETTINGS,
    statement_timeout: String(statementTimeoutMs),
    ...(startupOptions.includes('search_path') ? {} : { search_path: SEARCH_PATH }),
  }
  const rows = Object.entries(settings).map(([name, value]) => `('${name}', '${value}')`)
  return `select set_config(name, value, false) from (values ${rows.join(', ')}) as wanted (name, value)
    where current_setting(name, true) is not null union all ${COMMIT_SQL}`
}
