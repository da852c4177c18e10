import type { Socket } from 'node:net'
import knex, { type Knex } from 'knex'
import { driverConfig, isRetryable, sqlState } from '../../foundation/database/index.ts'
import { type JsonObject, toJsonbText } from '../../foundation/json/index.ts'
import { leaseLost } from '../../sync/runs/index.ts'
import { ensureTypedView } from './postgres-views.ts'
import { type RunHolder, type RunStore, type Store, type StoredPage, storageName } from './store.ts'
import { findPostgresProblem, StoreError } from './store-problem.ts'

/** Address and use of the database. */
export interface PostgresStoreOptions {
  readonly url: string
  /** Created when it does not exist. */
  readonly schema: string
  /** Connections at most. */
  readonly poolMax: number
  /** Called when a view of a unified resource could not be made what it should be; records are stored all the same. */
  readonly onViewProblem?: ((problem: string) => void) | undefined
}

/** The current holder of each run, which fences earlier ones. */
const HOLDER_TABLE = 'patchbay_run_holder'
/** No run is held for so long. */
const HOLDER_RETENTION_DAYS = 30
/** Pages are upserts and may be repeated, and reporting each page of 100 records costs more than storing it. */
const SAVE_INTERVAL_MS = 100
/** A statement that takes longer ends with its connection. */
const ANSWER_TIMEOUT_MS = 60_000
const ACQUIRE_TIMEOUT_MS = 10_000
/** Below ACQUIRE_TIMEOUT_MS, so that the error names the cause. */
const CONNECT_TIMEOUT_MS = 8_000
/** Of work that met a concurrent change in a database whose default isolation is stricter than READ COMMITTED. */
const ISOLATION_ATTEMPTS_MAX = 10
/** SQLSTATEs of a concurrent creation: unique violation, duplicate table, duplicate schema, duplicate row type of a table. */
const ALREADY_EXISTS_CODES: ReadonlySet<string> = new Set(['23505', '42P07', '42P06', '42710'])
const DDL_ATTEMPTS_MAX = 5
const SILENCE = `Connection terminated: no answer within ${ANSWER_TIMEOUT_MS / 1_000} seconds`
/** SQLSTATEs after a table was dropped: undefined table, undefined schema. */
const NOT_FOUND_CODES: ReadonlySet<string> = new Set(['42P01', '3F000'])

/**
 * Store of PostgreSQL tables, one per resource: `integrated_account_id`, `_id`, `record`, `run_id`, `first_seen_at`,
 * `last_seen_at`. Records are upserted by account and id, and never deleted. A unified resource has a typed view as well.
 *
 * A page is one statement: it is stored completely or not at all, and a suspended holder keeps no lock. Nothing depends on the
 * session: no settings, no start-up parameters, no prepared statements, so that connection poolers may stand before the database,
 * also those that give each transaction another session (PgBouncer).
 */
export function openPostgresStore(options: PostgresStoreOptions): Store {
  const database = knex({
    client: 'pg',
    version: '14',
    // Read when it is used first, so that its problem is one of the store.
    connection: () => ({
      application_name: 'patchbay daemon',
      ...driverConfig({ kind: 'url', url: options.url }),
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    }),
    pool: { min: 0, max: options.poolMax, afterCreate: limitSilence },
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
    // Error messages reach the log, values must not.
    compileSqlOnError: false,
    log: { debug() {}, warn() {}, error() {}, deprecate() {} },
  })
  return new PostgresStore(database, options)
}

class PostgresStore implements Store {
  readonly saveIntervalMs = SAVE_INTERVAL_MS
  readonly #database: Knex
  readonly #schema: string
  /** Tables known to exist, by resource. */
  readonly #tables = new Map<string, Promise<string>>()
  /** Schemas whose views are made, by resource. */
  readonly #views = new Map<string, string>()
  readonly #onViewProblem: (problem: string) => void
  #holderTable: Promise<void> | undefined

  constructor(database: Knex, { schema, onViewProblem = () => {} }: PostgresStoreOptions) {
    this.#database = database
    this.#schema = schema
    this.#onViewProblem = onViewProblem
  }

  async check(): Promise<void> {
    await this.#withRetry(() => this.#createHolderTable())
  }

  async open(holder: RunHolder): Promise<RunStore> {
    await this.#withRetry(() => this.#takeOver(holder))
    return {
      write: (page) => this.#withRetry(() => this.#write(holder, page)),
      async [Symbol.asyncDispose]() {},
    }
  }

  /** Repeats the work once when a table was dropped, which creates it again. @throws StoreError */
  async #withRetry(work: () => Promise<void>): Promise<void> {
    try {
      await retrySerialization(work).catch(async (error: unknown) => {
        if (!NOT_FOUND_CODES.has(sqlState(error))) throw error
        this.#holderTable = undefined
        this.#tables.clear()
        this.#views.clear()
        await retrySerialization(work)
      })
    } catch (error) {
      const problem = findPostgresProblem(error)
      throw problem === undefined ? error : new StoreError(problem, error)
    }
  }

  async #takeOver({ runId, attempt, leaseId, leasedUntil }: RunHolder): Promise<void> {
    await this.#ensureHolderTable()
    const sql = `insert into ?? as h (run_id, attempt, lease_id, leased_until) values (?, ?, ?, ?)
      on conflict (run_id) do update set attempt = excluded.attempt, lease_id = excluded.lease_id,
        leased_until = excluded.leased_until, opened_at = now()
      where h.leased_until <= excluded.leased_until`
    const { rowCount } = await this.#database.raw(sql, [
      this.#qualified(HOLDER_TABLE),
      runId,
      attempt,
      leaseId,
      leasedUntil,
    ])
    if (rowCount === 0) throw leaseLost(runId)
  }

  /** Locks the holder's row first: a later holder waits for this page, or this page is rejected with LEASE_LOST. */
  async #write(
    { runId, leaseId, integratedAccountId }: RunHolder,
    { resource, rows, recordSchema }: StoredPage,
  ): Promise<void> {
    if (rows.length === 0) return
    const table = await this.#ensureTable(resource)
    if (recordSchema !== undefined) await this.#ensureView(resource, recordSchema)
    const sql = `with holder as (select run_id from ?? where run_id = ? and lease_id = ? for update)
      insert into ?? as t (integrated_account_id, _id, record, run_id)
      select ?, page.id, page.record, holder.run_id
      from holder, rows from (jsonb_array_elements_text(?::jsonb), jsonb_array_elements(?::jsonb)) as page (id, record)
      on conflict (integrated_account_id, _id) do update
        set record = excluded.record, run_id = excluded.run_id, last_seen_at = excluded.last_seen_at`
    const keys = JSON.stringify(rows.map(({ key }) => key))
    const records = toJsonbText(rows.map(({ record }) => record))
    const holderTable = this.#qualified(HOLDER_TABLE)
    const bindings = [holderTable, runId, leaseId, table, integratedAccountId, keys, records]
    const { rowCount } = await this.#database.raw(sql, bindings)
    if (rowCount === 0) throw leaseLost(runId)
  }

  async #ensureHolderTable(): Promise<void> {
    this.#holderTable ??= this.#createHolderTable().catch((error: unknown) => {
      this.#holderTable = undefined
      throw error
    })
    await this.#holderTable
  }

  async #createHolderTable(): Promise<void> {
    const database = this.#database
    const { rows } = await database.raw('select to_regnamespace(quote_ident(?)) is not null as "exists"', [
      this.#schema,
    ])
    // `create schema if not exists` needs the privilege to create even when the schema exists.
    if (rows[0]?.exists !== true) await createConcurrently(() => database.schema.createSchemaIfNotExists(this.#schema))
    await this.#createTable(HOLDER_TABLE, (table) => {
      table.uuid('run_id').primary()
      table.integer('attempt').notNullable()
      table.uuid('lease_id').notNullable()
      table.timestamp('leased_until').notNullable()
      table.timestamp('opened_at').notNullable().defaultTo(database.fn.now())
    })
    await database.raw(`delete from ?? where opened_at < now() - make_interval(days => ?)`, [
      this.#qualified(HOLDER_TABLE),
      HOLDER_RETENTION_DAYS,
    ])
  }

  async #ensureTable(resource: string): Promise<string> {
    const name = storageName(resource)
    const found = this.#tables.get(name)
    if (found !== undefined) return await found
    const creating = this.#createTable(name, (table) => {
      table.uuid('integrated_account_id').notNullable()
      table.text('_id').notNullable()
      table.jsonb('record').notNullable()
      table.uuid('run_id').notNullable()
      table.timestamp('first_seen_at').notNullable().defaultTo(this.#database.fn.now())
      table.timestamp('last_seen_at').notNullable().defaultTo(this.#database.fn.now())
      table.primary(['integrated_account_id', '_id'])
    }).then(() => this.#qualified(name))
    this.#tables.set(name, creating)
    creating.catch(() => this.#tables.delete(name))
    return await creating
  }

  /** Views are for readers: a problem with one is reported, and the page is stored. */
  async #ensureView(resource: string, recordSchema: JsonObject): Promise<void> {
    const text = JSON.stringify(recordSchema)
    if (this.#views.get(resource) === text) return
    try {
      const target = { schema: this.#schema, table: storageName(resource), resource }
      const problem = await ensureTypedView(this.#database, target, recordSchema)
      if (problem !== undefined) this.#onViewProblem(problem)
    } catch (error) {
      const isStoreDown = findPostgresProblem(error)?.effect === 'unavailable'
      if (!(error instanceof Error) || isStoreDown || NOT_FOUND_CODES.has(sqlState(error))) throw error
      this.#onViewProblem(error.message)
    }
    this.#views.set(resource, text)
  }

  async #createTable(name: string, columns: (table: Knex.CreateTableBuilder) => void): Promise<void> {
    await createConcurrently(async () => {
      const schema = this.#database.schema.withSchema(this.#schema)
      if (!(await schema.hasTable(name)))
        await this.#database.schema.withSchema(this.#schema).createTable(name, columns)
    })
  }

  #qualified(table: string): string {
    return `${this.#schema}.${table}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database.destroy()
  }
}

/**
 * Ends a connection whose server is silent for too long, with its statement: a timeout on this side, since `statement_timeout` is a
 * setting of a session. The statement of an ended connection may still be stored, which does no harm: pages are upserts.
 */
function limitSilence(
  { connection: { stream } }: { readonly connection: { readonly stream: Socket } },
  done: (error: Error | null) => void,
): void {
  stream.setTimeout(ANSWER_TIMEOUT_MS, () => stream.destroy(new Error(SILENCE)))
  done(null)
}

/** Repeats work that met a concurrent change: each of its statements may be repeated, and none depends on settings of the session. */
async function retrySerialization(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ISOLATION_ATTEMPTS_MAX || !isRetryable(error)) throw error
    }
  }
}

/** Creates something that several daemons may create at once. */
async function createConcurrently(create: () => PromiseLike<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await create()
      return
    } catch (error) {
      if (!ALREADY_EXISTS_CODES.has(sqlState(error)) || attempt === DDL_ATTEMPTS_MAX) throw error
    }
  }
}
