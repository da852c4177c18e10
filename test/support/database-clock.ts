import pg from 'pg'

/**
 * A schema that precedes `pg_catalog` in the search path, whose `now()` and `clock_timestamp()` are the moment of its only
 * row, or the real time while that is null. Column defaults keep the real time: they were bound when the tables were made.
 */
const SCHEMA = `
  create schema test_clock;
  create table test_clock.moment (at timestamptz);
  insert into test_clock.moment values (null);`

/** Puts the clock before PostgreSQL's own functions. */
const OPTIONS = encodeURIComponent('-c search_path=test_clock,pg_catalog,public')

/** A function of PostgreSQL that tells the time. */
type TimeFunction = 'now' | 'clock_timestamp'

/**
 * The clock of one test database, for the statements of all connections and processes that use its `url`: the real time until it is set,
 * then the time that the test sets. The statements under test say `now()` as in production.
 */
export class DatabaseClock implements AsyncDisposable {
  readonly url: string
  readonly #connection: pg.Pool
  #now: Date | undefined

  private constructor(url: string, connection: pg.Pool) {
    this.url = `${url}${url.includes('?') ? '&' : '?'}options=${OPTIONS}`
    this.#connection = connection
  }

  /**
   * @param url of the database
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
    return new DatabaseClock(url, connection)
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
