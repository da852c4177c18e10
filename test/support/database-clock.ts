import pg from 'pg'

/**
 * A schema that precedes `pg_catalog` in the search path, whose `now()` and `clock_timestamp()` are the moment of its only
 * row, or the real time while that is null. Column defaults keep the real time: they were bound when the tables were made.
 */
const SCHEMA = `
  create schema test_clock;
  create table test_clock.moment (at timestamptz);
  insert into test_clock.moment values (null);`

/** A function of PostgreSQL that tells the time. */
type TimeFunction = 'now' | 'clock_timestamp'

/**
 * The clock of one test database, for the statements of all of its connections and processes: the real time until it is set,
 * then the time that the test sets. The statements under test say `now()` as in production.
 */
export class DatabaseClock implements AsyncDisposable {
  readonly #connection: pg.Pool
  #now: Date | undefined

  private constructor(connection: pg.Pool) {
    this.#connection = connection
  }

  /**
   * @param url of a database that no other connection uses yet: connections read the search path when they open
   * @param functions what the clock replaces; statements call `now()` per row, which is slower then
   */
  static async install(
    url: string,
    functions: readonly TimeFunction[] = ['now', 'clock_timestamp'],
  ): Promise<DatabaseClock> {
    // A pool of one: it queues statements of works that move the clock at the same time.
    const connection = new pg.Pool({ connectionString: url, max: 1 })
    await connection.query(SCHEMA)
    for (const name of functions)
      await connection.query(
        `create function test_clock.${name}() returns timestamptz stable
           return coalesce((select at from test_clock.moment), pg_catalog.${name}())`,
      )
    const { rows } = await connection.query('select quote_ident(current_database()) as name')
    await connection.query(`alter database ${rows[0].name} set search_path = test_clock, pg_catalog, public`)
    return new DatabaseClock(connection)
  }

  readonly now = (): Date => new Date(this.#now ?? Date.now())

  /** Stops the clock at that moment. */
  async set(moment: string | Date): Promise<void> {
    this.#now = new Date(moment)
    await this.#connection.query('update test_clock.moment set at = $1', [this.#now])
  }

  /** Stops the clock at the second that has just begun. */
  async stop(): Promise<void> {
    await this.set(new Date(Math.floor(Date.now() / 1_000) * 1_000))
  }

  /** Lets the clock tell the real time again. */
  async reset(): Promise<void> {
    this.#now = undefined
    await this.#connection.query('update test_clock.moment set at = null')
  }

  /** Moves the stopped clock. */
  async advance(ms: number): Promise<void> {
    await this.set(new Date(this.now().getTime() + ms))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.end()
  }
}
