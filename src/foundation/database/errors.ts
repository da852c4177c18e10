import { Failure } from '../base/errors.ts'
import type { PollLoopDeps } from '../base/poll-loop.ts'
import { describeError, type Logger } from '../telemetry/logger.ts'
import { findDatabaseProblem, isSqlState, sqlState, textOf } from './problems.ts'

/** SQLSTATE codes, PostgreSQL manual appendix A. */
const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK_DETECTED = '40P01'
const QUERY_CANCELED = '57014'
const LOCK_NOT_AVAILABLE = '55P03'
/** "Cached plan must not change result type": the table changed under a prepared statement. */
const FEATURE_NOT_SUPPORTED = '0A000'
/** Classes 22 (data exception) and 23 (integrity constraint violation). */
const DATA_OR_CONSTRAINT = /^2[1-3]/

/** True for a deadlock or serialization failure (40P01, 40001): running the whole transaction again may succeed. */
export function isRetryable(error: unknown): boolean {
  const code = sqlState(error)
  return code === SERIALIZATION_FAILURE || code === DEADLOCK_DETECTED
}

/** True when the database does not work, rather than the statement being wrong: loops retry, calls answer UNAVAILABLE. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return findDatabaseProblem(error) !== undefined
}

/** True for `lock_timeout` (55P03). */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE
}

/** True for a cancelled statement, also by `statement_timeout` (57014). */
export function isStatementTimeout(error: unknown): boolean {
  return sqlState(error) === QUERY_CANCELED
}

/** True when a prepared statement has to be prepared anew (0A000). */
export function isCachedPlanInvalid(error: unknown): boolean {
  return sqlState(error) === FEATURE_NOT_SUPPORTED
}

/** True when the statement violated the named unique constraint or index (23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return sqlState(error) === UNIQUE_VIOLATION && violatedConstraint(error) === constraint
}

/** True when the statement violated the named foreign key, or any (23503). */
export function isForeignKeyViolation(error: unknown, constraint?: string): boolean {
  return (
    sqlState(error) === FOREIGN_KEY_VIOLATION && (constraint === undefined || violatedConstraint(error) === constraint)
  )
}

/** Whether the row that another one refers to is not there, and not whether it is still referred to: one code is for both. */
function isReferenceMissing(error: unknown): boolean {
  return error instanceof Error && 'detail' in error && /is not present in table/.test(String(error.detail))
}

/** True when a value in some row is wrong (class 21, 22 or 23), rather than the statement, the connection or the server. */
export function isDataError(error: unknown): boolean {
  return DATA_OR_CONSTRAINT.test(sqlState(error))
}

const DELETED_MEANWHILE = 'something that the request refers to was deleted while it was handled'

/** The failure that a caller sees for a database error, or `undefined` for a bug. */
export function mapDatabaseError(error: unknown): Failure | undefined {
  if (isStatementTimeout(error) || isLockTimeout(error))
    return new Failure('DEADLINE_EXCEEDED', 'the database did not answer in time', { cause: error })
  // What a new row refers to was read before: it was deleted meanwhile. A row that is still referred to is a bug here.
  if (isForeignKeyViolation(error) && isReferenceMissing(error))
    return new Failure('RESOURCE_NOT_FOUND', DELETED_MEANWHILE, { cause: error })
  const problem = findDatabaseProblem(error)
  if (problem === undefined) return undefined
  const { reason, message, retryAfterSeconds } = problem
  const state = sqlState(error)
  const metadata = isSqlState(state) ? { sqlstate: state } : {}
  return new Failure(reason, message, { cause: error, retryAfterSeconds, metadata })
}

/**
 * Runs a delete that a foreign key rejects while the resource is referenced.
 *
 * @param resource.why the message, which also says what to do
 * @throws Failure RESOURCE_IN_USE naming the resource
 */
export async function mapForeignKeyToInUse<Result>(
  resource: { readonly type: string; readonly id: string; readonly why: string },
  remove: () => Promise<Result>,
): Promise<Result> {
  try {
    return await remove()
  } catch (cause) {
    if (!isForeignKeyViolation(cause)) throw cause
    const { type, id, why } = resource
    throw new Failure('RESOURCE_IN_USE', why, { resource: { type, id }, cause })
  }
}

/** Logs failed rounds of poll loops with their stack; a condition of the database is logged once per process, by its health check. */
export function logLoopErrors(logger: Pick<Logger, 'debug' | 'error'>): PollLoopDeps['onError'] {
  return (error, loop) => {
    const problem = findDatabaseProblem(error)
    if (problem === undefined) logger.error({ loop, ...describeError(error) }, 'a round failed')
    else logger.debug({ loop, reason: problem.reason }, 'the loop waits for the database')
    return undefined
  }
}

function violatedConstraint(error: unknown): string {
  return textOf(error, 'constraint')
}
