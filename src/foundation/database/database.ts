import type { Socket } from 'node:net'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import type { Json } from '../json/json.ts'
import { parseJson } from '../json/json-parse.ts'
import { toJsonbText } from '../json/jsonb.ts'
import { type DatabaseTarget, driverConfig } from './connection-address.ts'
import { describeOnce, nameColumnsInCamelCase, onConnectionEnding } from './describe-once.ts'
import { isCachedPlanInvalid, isRetryable } from './errors.ts'
import { parseTimestamp } from './parse-timestamp.ts'
import { bindParameters, type SqlParameters, StatementCache } from './prepared-statements.ts'
import { prepareSession } from './session-settings.ts'
import { stopWithRequest } from './stop-with-request.ts'

/** Settings of the connections. */
export interface DatabaseOptions {
  readonly target: DatabaseTarget
  /** Pool size: connections of this process at most. */
  readonly poolMax?: number
  /** Statements running longer are cancelled by the server. */
  readonly statementTimeoutMs?: number
  /** How much later than that an answer may come before the connection is closed. */
  readonly silenceGraceMs?: number
  /** Shown in `pg_stat_activity`. */
  readonly applicationName?: string
}

/** Below it, `FOR UPDATE SKIP LOCKED` on partitions and what migrations use is not there. */
export const SERVER_VERSION_MIN = 140_000

const POOL_MAX_DEFAULT = 16
const POOL_IDLE_MS = 60_000
/** Of a statement, unless the options say otherwise. */
export const STATEMENT_TIMEOUT_MS_DEFAULT = 30_000
const ACQUIRE_TIMEOUT_MS = 10_000
/** Until the server has greeted a new connection: below ACQUIRE_TIMEOUT_MS, so that the caller's error names the cause. */
const CONNECT_TIMEOUT_MS = 8_000
const TRANSACTION_ATTEMPTS_MAX = 4
/** Idle time of a connection before the first TCP keep-alive probe. */
const KEEP_ALIVE_PROBE_MS = 10_000
const SILENCE_GRACE_MS = 5_000

/** Marks what a Knex instance is; there at compile time alone. */
declare const KIND: unique symbol

/**
 * What a statement runs on: the pool or an open transaction. Of a function that works with either.
 *
 * Only the SQL files of a module (`sql.ts`, `sql/`) build and run statements; other files hand it through.
 */
export type Db = Knex & { readonly [KIND]: 'pool' | 'transaction' }
/** An open transaction: of a function whose statements are committed together, or whose locks last until its caller commits. */
export type Tx = Knex & { readonly [KIND]: 'transaction' }
/** Each statement is its own transaction: of a function that must not be called in one, as it waits for a third party. */
export type Pool = Knex & { readonly [KIND]: 'pool' }

/** The connection pool of one process. */
export class Database {
  /** Runs each statement in its own transaction. */
  readonly pool: Pool
  /** The generation in which each connection was opened; the pool closes those of earlier ones. */
  readonly #generations = new WeakMap<object, number>()
  #generation = 0

  constructor(options: DatabaseOptions) {
    const {
      target,
      applicationName = 'patchbay',
      statementTimeoutMs = STATEMENT_TIMEOUT_MS_DEFAULT,
      silenceGraceMs = SILENCE_GRACE_MS,
    } = options
    const session = { statementTimeoutMs, startupOptions: driverConfig(target).options }
    const pool = knex({
      client: 'pg',
      // Its own question about it would be another round trip; nothing depends on the answer.
      version: String(SERVER_VERSION_MIN / 10_000),
      // Read anew for each connection: files of certificates are renewed.
      connection: () => ({
        application_name: applicationName,
        ...driverConfig(target),
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_PROBE_MS,
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      }),
      pool: {
        min: 0,
        max: options.poolMax ?? POOL_MAX_DEFAULT,
        idleTimeoutMillis: POOL_IDLE_MS,
        afterCreate: (connection: object, done: (error: Error | null, connection: object) => void) => {
          this.#generations.set(connection, this.#generation)
          onConnectionEnding(connection, () => this.#generations.delete(connection))
          nameColumnsInCamelCase(connection)
          describeOnce(connection)
          if (statementTimeoutMs > 0) limitSilence(connection as pg.Client, statementTimeoutMs + silenceGraceMs)
          prepareSession(connection, session).then(
            () => {
              stopWithRequest(connection)
              done(null, connection)
            },
            (error: Error) => {
              ;(connection as pg.Client).end(() => {})
              done(error, connection)
            },
          )
        },
        validate: (connection: object) => this.#generations.get(connection) === this.#generation,
      },
      acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
      // An error's message keeps the placeholders: the values could be secrets, and messages are logged.
      compileSqlOnError: false,
      // Knex prints to the console what it also throws; the caller logs it once, where it decides what it means.
      log: { debug() {}, warn() {}, error() {}, deprecate() {} },
    })
    // Knex hands these on to the transactions of the pool.
    pool.userParams.statements = new StatementCache()
    this.pool = pool as Knex as Pool
  }

  /** Calls back with the error of every statement that fails, also within transactions, and of every connection that cannot be opened. */
  onError(listener: (error: unknown) => void): void {
    this.pool.on('query-error', listener)
    this.pool.client.pool.on('createFail', (_event: number, error: unknown) => listener(error))
  }

  /** Replaces every connection that is open now before it is used again; work on them goes on. */
  renewConnections(): void {
    this.#generation++
  }

  /**
   * Runs `work` in one READ COMMITTED transaction and commits, or rolls back when it throws.
   *
   * After a deadlock or serialization failure it runs again from the start, so `work` must have no effects outside the
   * database.
   */
  async transaction<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.pool.transaction((tx) => work(tx as Knex as Tx))
      } catch (error) {
        if (attempt === TRANSACTION_ATTEMPTS_MAX || !isRetryable(error)) throw error
      }
    }
  }

  /** Runs `work` as `transaction` does, and rolls back what it did: its result is that of a dry run. */
  async rolledBack<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    try {
      return await this.transaction(async (tx) => {
        throw new Undone(await work(tx))
      })
    } catch (error) {
      if (error instanceof Undone) return error.result as Result
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pool.destroy()
  }
}

/** Ends a transaction that is not to be kept. */
class Undone extends Error {
  readonly result: unknown

  constructor(result: unknown) {
    super('the transaction was a dry run')
    this.result = result
  }
}

/**
 * Runs one raw statement and returns its rows.
 *
 * The text should be constant: it is compiled to `$n` once, and each connection parses and plans it once, as a prepared
 * statement under a name. A placeholder is `:name`; a name used twice is one parameter. `::type` is a cast as usual.
 */
export async function query<Row>(tx: Db, sql: string, parameters: SqlParameters = {}): Promise<Row[]> {
  return (await run<{ rows: Row[] }>(tx, sql, parameters)).rows
}

/**
 * Like `query`, for a list with filters: planned for the values of each call. A plan for any value takes a filter for one that
 * many rows have, and reads all of them where few do.
 */
export async function queryForValues<Row>(tx: Db, sql: string, parameters: SqlParameters): Promise<Row[]> {
  return (await run<{ rows: Row[] }>(tx, sql, parameters, false)).rows
}

/** Like `query`, for a statement that yields at most one row. */
export async function queryOne<Row>(tx: Db, sql: string, parameters: SqlParameters = {}): Promise<Row | undefined> {
  return (await run<{ rows: Row[] }>(tx, sql, parameters)).rows[0]
}

/** Runs one raw statement and returns how many rows it changed. */
export async function execute(tx: Db, sql: string, parameters: SqlParameters = {}): Promise<number> {
  return (await run<{ rowCount: number | null }>(tx, sql, parameters)).rowCount ?? 0
}

/** A JSON value as the text of a `jsonb` or `json` parameter: every digit of numbers stays, and what jsonb cannot store is replaced. */
export function jsonb(value: Json): string {
  return toJsonbText(value)
}

/** What a statement uses of Knex's client: that of the pool, or that of a transaction, which has one connection. */
interface StatementClient {
  acquireConnection(): Promise<{ query(config: StatementConfig): Promise<unknown> }>
  releaseConnection(connection: object): Promise<void>
  /** `query` before a statement and `query-error` after a failed one reach the listeners of the pool. */
  emit(event: 'query' | 'query-error', ...details: readonly unknown[]): boolean
}

/** A statement as the driver takes it. */
interface StatementConfig {
  readonly text: string
  readonly name: string | undefined
  readonly values: (string | Buffer | null)[]
}

/**
 * Sends a statement over a connection of Knex's pool or transaction by the driver itself: what Knex does around a raw statement
 * took as long as the driver (38 of 90 µs).
 */
async function run<Result>(tx: Db, sql: string, parameters: SqlParameters, isPrepared = true): Promise<Result> {
  const statements: StatementCache = tx.userParams.statements
  const { text, keys, name } = statements.get(sql)
  const client: StatementClient = tx.client
  const values = bindParameters(keys, parameters)
  const connection = await client.acquireConnection()
  try {
    assertOpen(tx)
    client.emit('query', { sql: text })
    return (await connection.query({ text, name: isPrepared ? name : undefined, values })) as Result
  } catch (error) {
    if (isCachedPlanInvalid(error)) statements.forget(sql)
    if (error instanceof Error) error.message = `${text} - ${error.message}`
    client.emit('query-error', error, { sql: text })
    throw error
  } finally {
    await client.releaseConnection(connection)
  }
}

/** @throws Error when the transaction has ended: its connection may be another's by now */
function assertOpen(tx: Db): void {
  if (tx.isTransaction === true && (tx as Knex as Knex.Transaction).isCompleted())
    throw new Error('the transaction has ended')
}

/** Nesting was bounded when the value was written. Half of all values are empty. */
function parseStored(text: string): Json {
  if (text === '{}') return {}
  return text === '[]' ? [] : parseJson(text, Number.POSITIVE_INFINITY)
}

// bigint columns are counters well below 2^53.
pg.types.setTypeParser(pg.types.builtins.INT8, Number)
// `jsonb` keeps every digit of a number; so does what is read from it.
pg.types.setTypeParser(pg.types.builtins.JSONB, parseStored)
pg.types.setTypeParser(pg.types.builtins.JSON, parseStored)
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, parseTimestamp)

/**
 * Ends a connection whose server says nothing to a statement for longer than the statement may take: its host is gone, which TCP alone
 * notices after a quarter of an hour.
 */
function limitSilence(client: pg.Client, silenceMs: number): void {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection
  const isIdle = () => (client as unknown as { readonly readyForQuery: boolean }).readyForQuery
  stream.setTimeout(silenceMs, () => {
    if (!isIdle()) stream.destroy(new Error(`Connection terminated: no answer within ${silenceMs / 1_000} seconds`))
  })
}
