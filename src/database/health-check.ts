import type { Clock } from '../base/index.ts'
import { Database, type DatabaseOptions, queryOne, type Tx } from './database.ts'

/** What watching needs. */
export interface HealthCheckOptions {
  /** How to connect; the watch has one connection of its own, so that a busy pool is not taken for a dead server. */
  readonly connection: DatabaseOptions
  readonly clock: Clock
  /** Brings a server back that is this process's to restart. Called at every look while there is none; may reject. */
  readonly restart?: (() => Promise<void>) | undefined
  readonly onRestartError?: ((error: unknown) => void) | undefined
}

const CHECK_INTERVAL_MS = 1_000
/** A server that answers later than this is as good as gone. */
const CHECK_TIMEOUT_MS = 5_000

/** A health check of the database: one cheap query a second, however many ask for the result. */
export class DatabaseHealthCheck implements AsyncDisposable {
  readonly #deps: HealthCheckOptions
  readonly #database: Database
  readonly #stop = new AbortController()
  readonly #listeners: ((isReachable: boolean) => void)[] = []
  #running: Promise<void> | undefined
  #isReachable = true

  constructor(deps: HealthCheckOptions) {
    this.#deps = deps
    this.#database = new Database({ ...deps.connection, poolMax: 1 })
  }

  /** Begins to look; later calls do nothing. */
  start(): void {
    this.#running ??= this.#run()
  }

  get isReachable(): boolean {
    return this.#isReachable
  }

  /** Calls back now and at every change. */
  onChange(listener: (isReachable: boolean) => void): void {
    this.#listeners.push(listener)
    listener(this.#isReachable)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#database[Symbol.asyncDispose]()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps
    while (!this.#stop.signal.aborted) {
      await this.#check()
      await clock.sleep(CHECK_INTERVAL_MS, this.#stop.signal)
    }
  }

  async #check(): Promise<void> {
    // A connection may have been closed by a restart or by a pooler: only a new one proves anything.
    const answers = (await this.#ping()) || (await this.#ping())
    if (this.#stop.signal.aborted) return
    if (answers !== this.#isReachable) {
      this.#isReachable = answers
      for (const listener of this.#listeners) listener(answers)
    }
    if (!answers) await this.#deps.restart?.().catch((error: unknown) => this.#deps.onRestartError?.(error))
  }

  async #ping(): Promise<boolean> {
    const late = new AbortController()
    const timeout = this.#deps.clock
      .sleep(CHECK_TIMEOUT_MS, AbortSignal.any([late.signal, this.#stop.signal]))
      .then(() => false)
    const answer = ping(this.#database.pool).then(
      () => true,
      () => false,
    )
    try {
      return await Promise.race([answer, timeout])
    } finally {
      late.abort()
    }
  }
}

/** Reads nothing: an answer shows that the server takes statements. */
async function ping(tx: Tx): Promise<void> {
  await queryOne(tx, 'select 1')
}

/** The server's version as a number, 140000 for 14.0. */
export async function readServerVersion(tx: Tx): Promise<number> {
  const found = await queryOne<{ readonly version: number }>(
    tx,
    `select current_setting('server_version_num')::int as version`,
  )
  return found?.version ?? 0
}
