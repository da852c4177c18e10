import { type Clock, PollLoop, type Random, withTimeout } from '../base/index.ts'
import { Database, type DatabaseOptions, execute, queryOne, type Tx } from './database.ts'

/** What the health check checks, and how it restarts a server. */
export interface HealthCheckOptions {
  /** How to connect; the check has one connection of its own, so that a busy pool does not look like a dead server. */
  readonly connection: DatabaseOptions
  readonly clock: Clock
  readonly random: Random
  /** Restarts a server that this process manages. Called at every failed check; may reject. */
  readonly restart?: (() => Promise<void>) | undefined
  readonly onRestartError: (error: unknown) => void
}

const CHECK_INTERVAL_MS = 1_000
/** A server that answers later than this counts as down. */
const CHECK_TIMEOUT_MS = 5_000

/** Health check of the database: one cheap query a second, however many read its result. */
export class DatabaseHealthCheck implements AsyncDisposable {
  readonly #options: HealthCheckOptions
  readonly #database: Database
  readonly #loop: PollLoop
  readonly #stop = new AbortController()
  readonly #listeners: ((isReachable: boolean) => void)[] = []
  #isReachable = true

  constructor(options: HealthCheckOptions) {
    this.#options = options
    this.#database = new Database({ ...options.connection, poolMax: 1 })
    this.#loop = new PollLoop(
      { clock: options.clock, random: options.random, onError: () => undefined },
      { name: 'database-health', intervalMs: CHECK_INTERVAL_MS, runOnce: () => this.#check() },
    )
  }

  /** Starts checking; later calls do nothing. */
  start(): void {
    this.#loop.start()
  }

  get isReachable(): boolean {
    return this.#isReachable
  }

  /** Calls the listener now and at every change. */
  onChange(listener: (isReachable: boolean) => void): void {
    this.#listeners.push(listener)
    listener(this.#isReachable)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#database[Symbol.asyncDispose]()
    await this.#loop[Symbol.asyncDispose]()
  }

  /** @returns false: the next check follows after the interval */
  async #check(): Promise<boolean> {
    // A restart or a pooler may have closed the connection: the second ping opens a new one.
    const isReachable = (await this.#ping()) || (await this.#ping())
    if (this.#stop.signal.aborted) return false
    if (isReachable !== this.#isReachable) {
      this.#isReachable = isReachable
      for (const listener of this.#listeners) listener(isReachable)
    }
    const { restart, onRestartError } = this.#options
    if (!isReachable) await restart?.().catch(onRestartError)
    return false
  }

  async #ping(): Promise<boolean> {
    const answer = execute(this.#database.pool, 'select 1').then(
      () => true,
      () => false,
    )
    return (await withTimeout(this.#options.clock, answer, CHECK_TIMEOUT_MS, this.#stop.signal)) ?? false
  }
}

/** The server's version as a number, 140000 for 14.0. */
export async function readServerVersion(tx: Tx): Promise<number> {
  const found = await queryOne<{ readonly version: number }>(
    tx,
    `select current_setting('server_version_num')::int as version`,
  )
  return found?.version ?? 0
}
