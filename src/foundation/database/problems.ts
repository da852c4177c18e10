import { DATABASE_REASONS, Failure } from '../base/errors.ts'

/** Reasons that say that the database does not work, whatever the statement. */
export type DatabaseReason = (typeof DATABASE_REASONS)[number]

/** A condition of the database under which statements fail that are right; it is for the operator to end it. */
export interface DatabaseProblem {
  readonly reason: DatabaseReason
  /** What is wrong and what to do; safe to show to any caller. */
  readonly message: string
  /** The least wait before another attempt, seconds. */
  readonly retryAfterSeconds: number
}

interface Condition extends DatabaseProblem {
  /** SQLSTATE codes (PostgreSQL manual, appendix A), and codes of the operating system for the connection. */
  readonly codes?: RegExp
  /** Messages of errors whose code does not tell: of pg and of Knex's pool, and of the operating system within PostgreSQL's. */
  readonly messages?: RegExp
  /** Functions of PostgreSQL that raise the error; their names do not depend on the language of its messages. */
  readonly routines?: RegExp
}

/** Seconds a client should wait while the database restarts, and until an operator has acted. */
const RESTART_SECONDS = 1
const OPERATOR_SECONDS = 10

/** Where an error fits several conditions, the first one counts. */
const CONDITIONS: readonly Condition[] = [
  {
    reason: 'DATABASE_OVERLOADED',
    messages: /could not resize shared memory segment/,
    message: 'the shared memory of the database is full: make its /dev/shm larger (docker run --shm-size)',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_DISK_FULL',
    codes: /^53100$/,
    messages: /No space left on device|Disk quota exceeded/,
    message: 'the disk of the database is full, so nothing can be stored: free space on it, or make it larger',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_READ_ONLY',
    codes: /^25006$/,
    message:
      'the database takes no writes: connect to the primary instead of a standby, or turn off default_transaction_read_only',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_READ_ONLY',
    routines: /^GetNew(TransactionId|MultiXactId)$/,
    message: 'the database takes no writes until it has been vacuumed: transaction ids are about to wrap around',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_OVERLOADED',
    codes: /^53300$/,
    message:
      'the database takes no more connections: raise max_connections or the limit of the role, or lower PATCHBAY_DATABASE_POOL',
    retryAfterSeconds: RESTART_SECONDS,
  },
  {
    reason: 'DATABASE_OVERLOADED',
    codes: /^(EMFILE|ENFILE)$/,
    message:
      'this server has too many open files and connections to connect to the database: raise its limit (ulimit -n)',
    retryAfterSeconds: RESTART_SECONDS,
  },
  {
    reason: 'DATABASE_OVERLOADED',
    codes: /^53/,
    message:
      'the database is out of memory or at a limit of its configuration, which its log names: give it more, or lower PATCHBAY_DATABASE_POOL',
    retryAfterSeconds: RESTART_SECONDS,
  },
  {
    reason: 'DATABASE_ACCESS_DENIED',
    codes: /^(28...|3D000|42501|F0...)$/,
    message:
      'the database rejects this service: check user, password, database and rights of DATABASE_URL, and the configuration files of the server',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_ACCESS_DENIED',
    codes:
      /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|CERT_.*|UNABLE_TO_.*|ERR_TLS_.*|ERR_SSL_.*|ERR_INVALID_URL)$/,
    message:
      'TLS to the database fails: check its certificate, and sslmode, sslrootcert, sslcert and sslkey of DATABASE_URL',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_DAMAGED',
    codes: /^(58...|XX001|XX002)$/,
    message:
      'the database cannot read or write its files: its log names them. Check the disk, then repair them or restore a backup',
    retryAfterSeconds: OPERATOR_SECONDS,
  },
  {
    reason: 'DATABASE_UNAVAILABLE',
    // Not 57014 (query_canceled), which is a timeout of the statement.
    codes:
      /^(08...|57000|57P..|25P0[34]|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/,
    messages:
      /Connection terminated|timeout expired|Timeout acquiring a connection|Unable to acquire a connection|not queryable/,
    message: 'the database is not reachable at the moment, try again',
    retryAfterSeconds: RESTART_SECONDS,
  },
]

/** Of a server that does not answer, and of one that answers that it takes no writes. */
export const UNREACHABLE = conditionOf('DATABASE_UNAVAILABLE')
export const READ_ONLY = conditionOf('DATABASE_READ_ONLY')

/** The condition of the database that an error shows; `undefined`: the error has another cause, such as the statement. */
export function findDatabaseProblem(error: unknown): DatabaseProblem | undefined {
  if (error instanceof Failure) return problemOfFailure(error)
  if (!(error instanceof Error)) return undefined
  return CONDITIONS.find(
    ({ codes, messages, routines }) =>
      codes?.test(sqlState(error)) || messages?.test(error.message) || routines?.test(textOf(error, 'routine')),
  )
}

/** The code of an error of the driver: SQLSTATE, or of the operating system; empty without one. */
export function sqlState(error: unknown): string {
  return textOf(error, 'code')
}

/** Whether a code is one of PostgreSQL, instead of the operating system. */
export function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code)
}

/** A property of an error of the driver as text; empty when it is absent. */
export function textOf(error: unknown, name: string): string {
  const value = error instanceof Error ? (error as unknown as Readonly<Record<string, unknown>>)[name] : undefined
  return value === undefined ? '' : String(value)
}

function conditionOf(reason: DatabaseReason): DatabaseProblem {
  const found = CONDITIONS.find((each) => each.reason === reason)
  if (found === undefined) throw new Error(`no condition ${reason}`)
  return found
}

function problemOfFailure({ reason: given, publicMessage: message, retryAfterSeconds }: Failure) {
  const reason = DATABASE_REASONS.find((each) => each === given)
  return reason && { reason, message, retryAfterSeconds: retryAfterSeconds ?? RESTART_SECONDS }
}
