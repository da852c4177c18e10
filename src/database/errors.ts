import { Failure, type PollLoopDeps } from '../base/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'

/** SQLSTATE classes and codes, PostgreSQL manual appendix A. */
const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK_DETECTED = '40P01'
const QUERY_CANCELED = '57014'
const LOCK_NOT_AVAILABLE = '55P03'
/** "cached plan must not change result type". */
const FEATURE_NOT_SUPPORTED = '0A000'
const UNAVAILABLE_CODES: ReadonlySet<string> = new Set([
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '25P03',
  '08000',
  '08001',
  '08003',
  '08004',
  '08006',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
])
const LOST_CONNECTION =
  /Connection terminated|timeout expired|Timeout acquiring a connection|Unable to acquire a connection|not queryable/

/** Seconds a client should wait while the database restarts. */
const RETRY_AFTER_SECONDS = 1

function sqlState(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Tells whether running the whole transaction again may succeed. */
export function isRetryable(error: unknown): boolean {
  const code = sqlState(error)
  return code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED
}

/** Tells whether a prepared statement's plan is no longer valid because a table has changed; preparing it anew helps. */
export function isCachedPlanInvalid(error: unknown): boolean {
  return sqlState(error) === FEATURE_NOT_SUPPORTED
}

/** Tells whether the database, not the statement, is the problem: loops wait and go on, calls answer UNAVAILABLE. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof Failure) return error.reason === 'DATABASE_UNAVAILABLE'
  return UNAVAILABLE_CODES.has(sqlState(error)) || (error instanceof Error && LOST_CONNECTION.test(error.message))
}

/** Tells whether a lock was not to be had in the time that was set for it. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE
}

/** Tells whether a statement was cancelled because it took longer than it may. */
export function isStatementTimeout(error: unknown): boolean {
  return sqlState(error) === QUERY_CANCELED
}

/** Tells whether the statement broke the named unique constraint or index. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return sqlState(error) === UNIQUE_VIOLATION && violatedConstraint(error) === constraint
}

/** Tells whether the statement would leave a reference of the named foreign key dangling. */
export function isForeignKeyViolation(error: unknown, constraint?: string): boolean {
  return (
    sqlState(error) === FOREIGN_KEY_VIOLATION && (constraint === undefined || violatedConstraint(error) === constraint)
  )
}

/** The refusal behind a database error that a caller may see, or `undefined` for a bug. */
export function mapDatabaseError(error: unknown): Failure | undefined {
  if (isStatementTimeout(error) || isLockTimeout(error))
    return new Failure('DEADLINE_EXCEEDED', 'the database did not answer in time', { cause: error })
  if (!isDatabaseUnavailable(error)) return undefined
  return new Failure('DATABASE_UNAVAILABLE', 'the database is not reachable at the moment, try again', {
    cause: error,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}

function violatedConstraint(error: unknown): string {
  return error instanceof Error && 'constraint' in error ? String(error.constraint) : ''
}

/** SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation). */
const DATA_OR_CONSTRAINT = /^2[23]/

/** Tells whether a value in some row is the problem, rather than the statement, the connection or the server. */
export function isDataError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && DATA_OR_CONSTRAINT.test(String(error.code))
}

/**
 * Runs a delete whose foreign keys refuse it while the thing is used.
 *
 * @throws Failure RESOURCE_IN_USE saying `why`, which also tells the caller what to do
 */
export async function mapForeignKeyToInUse<Result>(
  used: { readonly type: string; readonly id: string; readonly why: string },
  remove: () => Promise<Result>,
): Promise<Result> {
  try {
    return await remove()
  } catch (cause) {
    if (!isForeignKeyViolation(cause)) throw cause
    throw new Failure('RESOURCE_IN_USE', used.why, { resource: { type: used.type, id: used.id }, cause })
  }
}

/** Logs failed rounds of poll loops on the database: an outage once per loop as a warning, everything else with its stack. */
export function logLoopErrors(logger: Pick<Logger, 'warn' | 'error'>): PollLoopDeps['onError'] {
  return (error, loop, failures) => {
    if (!isDatabaseUnavailable(error)) logger.error({ loop, ...describeError(error) }, 'a round failed')
    else if (failures === 1) logger.warn({ loop }, 'the database is unavailable, the loop waits')
    return undefined
  }
}
