import { truncateText } from '../../foundation/base/index.ts'
import { isSqlState, sqlState } from '../../foundation/database/index.ts'

/**
 * What becomes of a run whose store has a problem: it waits without counting an attempt, it is tried again, or it fails at once,
 * because only a change of the store or of the daemon's options helps. Only for what is `unavailable` a daemon begins to wait.
 */
type StoreEffect = 'unavailable' | 'retry' | 'failed'

/** Why the store did not take something. */
export interface StoreProblem {
  readonly effect: StoreEffect
  /** Reason on the run. */
  readonly reason: `STORE_${string}`
  /** What is wrong, what the store answered, and what to do, on one line. */
  readonly message: string
}

/** A store that did not do what it was asked to. */
export class StoreError extends Error {
  readonly problem: StoreProblem

  constructor(problem: StoreProblem, cause: unknown) {
    super(problem.message, { cause })
    this.name = 'StoreError'
    this.problem = problem
  }
}

interface ProblemRow extends Pick<StoreProblem, 'effect' | 'reason'> {
  /** SQLSTATE codes (PostgreSQL manual, appendix A), and codes of Node.js and of the operating system. */
  readonly codes?: RegExp
  /** Messages of errors whose code does not tell: of the driver, and of connection poolers. */
  readonly messages?: RegExp
  readonly what: string
  /** What to do. */
  readonly advice: string
}

const CHECK_TLS = 'add ?sslmode=require to its address where it demands TLS, remove it where it has none'

/** Every error of PostgreSQL, of a pooler before it, and of the connection to them. The first row that fits counts. */
const POSTGRES_PROBLEMS: readonly ProblemRow[] = [
  {
    effect: 'failed',
    reason: 'STORE_TLS_FAILED',
    codes: /^(CERT_|ERR_TLS_|ERR_SSL_|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH)/,
    messages: /does not support SSL|no encryption|SSL off|insecure|SSL.*required|requires? (SSL|TLS)/i,
    what: 'the store cannot be reached with this choice of TLS',
    advice: `${CHECK_TLS}, and name the authority of its certificate by sslrootcert`,
  },
  {
    effect: 'failed',
    reason: 'STORE_ACCESS_DENIED',
    codes: /^28/,
    messages: /^SASL|password authentication failed|no such user|Tenant or user not found|Unknown authentication/,
    what: 'the store rejects the daemon',
    advice: 'check user and password of its address, and pg_hba.conf of the server',
  },
  {
    effect: 'failed',
    reason: 'STORE_NOT_FOUND',
    codes: /^(3D000|3F000)$/,
    messages: /no such database/,
    what: 'the store does not exist',
    advice: 'check the database of its address and --schema, or create them',
  },
  {
    effect: 'failed',
    reason: 'STORE_ACCESS_DENIED',
    codes: /^(42501|0L|0P)/,
    what: 'the store does not let the daemon do this',
    advice: 'grant its user CREATE on the database, or USAGE and CREATE on the schema, and let it own the tables there',
  },
  {
    effect: 'failed',
    reason: 'STORE_ADDRESS_INVALID',
    codes: /^ERR_INVALID_URL$/,
    messages: /unsupported startup parameter|^UR[IL] malformed|^Invalid URL|^E[A-Z]+: .*, open/,
    what: 'the address of the store cannot be used',
    advice:
      'write special characters of a password as %23, and remove options that the server or its pooler does not take',
  },
  {
    effect: 'retry',
    reason: 'STORE_READ_ONLY',
    codes: /^25006$/,
    what: 'the store takes no writes',
    advice: 'use the address of the primary instead of a standby, or turn off default_transaction_read_only',
  },
  {
    effect: 'failed',
    reason: 'STORE_TABLE_CONFLICT',
    codes: /^(42|23|2BP01|P0001|44000)/,
    messages: /cannot (insert into|update) (column|view|generated)/,
    what: 'a table of the store is not as daemons make it',
    advice: 'rename or drop it, or name another schema by --schema',
  },
  {
    effect: 'failed',
    reason: 'STORE_RECORD_REJECTED',
    codes: /^(22|54)/,
    what: 'the store cannot hold a record',
    advice: 'it needs the encoding UTF8, and an id of at most 2 kB in every record',
  },
  {
    effect: 'unavailable',
    reason: 'STORE_DISK_FULL',
    codes: /^53100$/,
    messages: /No space left on device|Disk quota exceeded/,
    what: 'the disk of the store is full',
    advice: 'free space on it, or make it larger',
  },
  {
    effect: 'unavailable',
    reason: 'STORE_OVERLOADED',
    codes: /^53/,
    messages: /no more connections allowed|Max client connections|query_wait_timeout|too many (clients|connections)/,
    what: 'the store has no room for the daemon',
    advice: 'raise its limit of connections or its memory, or lower --capacity',
  },
  {
    effect: 'unavailable',
    reason: 'STORE_BUSY',
    codes: /^(40|55P03|57014|25P0)/,
    what: 'the store did not finish in time',
    advice: 'look for transactions that hold locks on its tables',
  },
  {
    effect: 'unavailable',
    reason: 'STORE_UNAVAILABLE',
    codes: /^(08|57|E[A-Z]+(_[A-Z]+)*$)/,
    messages: /Connection terminated|timeout expired|Timeout acquiring|Unable to acquire|not queryable|SSL connection/,
    what: 'the store is unavailable',
    advice: 'check that it runs, and host and port of its address',
  },
  {
    effect: 'retry',
    reason: 'STORE_FAILED',
    codes: /^[0-9A-Z]{5}$/,
    what: 'the store answered with an error',
    advice: 'its log has more about it',
  },
]

/** Errors of the operating system for files. The first row that fits counts. */
const FILE_PROBLEMS: readonly ProblemRow[] = [
  {
    effect: 'unavailable',
    reason: 'STORE_DISK_FULL',
    codes: /^(ENOSPC|EDQUOT|EFBIG)$/,
    what: 'the disk of the store is full',
    advice: 'free space on it, or make it larger',
  },
  {
    effect: 'failed',
    reason: 'STORE_ACCESS_DENIED',
    codes: /^(EACCES|EPERM)$/,
    what: 'the store does not let the daemon do this',
    advice: 'let the user of the daemon write to its directory',
  },
  {
    effect: 'retry',
    reason: 'STORE_READ_ONLY',
    codes: /^EROFS$/,
    what: 'the store takes no writes',
    advice: 'mount its file system for writing, or name another directory',
  },
  {
    effect: 'failed',
    reason: 'STORE_NOT_FOUND',
    codes: /^(ENOTDIR|EISDIR|ENAMETOOLONG|ELOOP)$/,
    what: 'the store is no directory',
    advice: 'name a directory, or one that can be created',
  },
  {
    effect: 'unavailable',
    reason: 'STORE_UNAVAILABLE',
    codes: /^E[A-Z]+$/,
    what: 'the store is unavailable',
    advice: 'check its disk, and that the directory stays where it is',
  },
]

/** The problem of the store that an error shows; `undefined`: the error is no answer of PostgreSQL or its connection, but a bug. */
export function findPostgresProblem(error: unknown): StoreProblem | undefined {
  return findProblem(POSTGRES_PROBLEMS, error)
}

/** Runs work on files. @throws StoreError for an error of the operating system */
export async function withFileProblems<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const problem = findProblem(FILE_PROBLEMS, error)
    throw problem === undefined ? error : new StoreError(problem, error)
  }
}

function findProblem(rows: readonly ProblemRow[], error: unknown): StoreProblem | undefined {
  if (!(error instanceof Error)) return undefined
  const code = sqlState(error)
  const row = rows.find(({ codes, messages }) => messages?.test(error.message) || codes?.test(code))
  if (row === undefined) return undefined
  const { effect, reason, what, advice } = row
  return { effect, reason, message: `${what}: ${answerOf(error, code)}: ${advice}` }
}

/** Knex puts the statement before the message of the server. */
const STATEMENT = /^(select|with|insert|delete|create|lock|drop|comment|rollback|begin) .* - /
/** What Knex and its pool say of a server that does not answer, with advice about pools that is wrong then. */
const NO_ANSWER = /Timeout acquiring a connection|Unable to acquire a connection|timeout expired/
/** PostgreSQL repeats values in some messages. */
const ANSWER_LENGTH_MAX = 500

/** What the store said, on one line. Of a name with several addresses the error has no text but a code. */
function answerOf({ message }: Error, code: string): string {
  if (NO_ANSWER.test(message)) return 'no answer in time'
  const text = truncateText(message.replace(/\s+/g, ' ').trim().replace(STATEMENT, ''), ANSWER_LENGTH_MAX)
  if (text === '') return code
  return isSqlState(code) ? `${text} (${code})` : text
}
