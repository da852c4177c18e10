import type { Clock } from '../base/index.ts'
import { Database, type DatabaseOptions } from './database.ts'
import { ping } from './tables/operating.ts'

/** What watching needs. */
export interface DatabaseWatchDeps {
  /** How to connect; the watch has one connection of its own, so that a busy pool is not taken for a dead server. */
  readonly connection: DatabaseOptions
  readonly clock: Clock
  /** Brings a server back that is this process's to restart. Called at every look while there is none; may reject. */
  readonly restart?: (() => Promise<void>) | undefined
  readonly onRestartFailed?: ((error: unknown) => void) | undefined
}

const LOOK_INTERVAL_MS = 1_000
/** A server that answers later than this is as good as gone. */
const ANSWER_MS = 5_000

/** A health check of the database: one cheap query a second, however many ask for the result. */
export class DatabaseWatch implements AsyncDisposable {
  readonly #deps: DatabaseWatchDeps
  readonly #database: Database
  readonly #stop = new AbortController()
  readonly #listeners: ((isReachable: boolean) => void)[] = []
  #running: Promise<void> | undefined
  #isReachable = true

  constructor(deps: DatabaseWatchDeps) {
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
  watch(listener: (isReachable: boolean) => void): void {
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
      await this.#look()
      await clock.sleep(LOOK_INTERVAL_MS, this.#stop.signal)
    }
  }

  async #look(): Promise<void> {
    // A connection may have been closed by a restart or by a pooler: only a new one proves anything.
    const answers = (await this.#answers()) || (await this.#answers())
    if (this.#stop.signal.aborted) return
    if (answers !== this.#isReachable) {
      this.#isReachable = answers
      for (const listener of this.#listeners) listener(answers)
    }
    if (!answers) await this.#deps.restart?.().catch((error: unknown) => this.#deps.onRestartFailed?.(error))
  }

  async #answers(): Promise<boolean> {
    const late = new AbortController()
    const timeout = this.#deps.clock
      .sleep(ANSWER_MS, AbortSignal.any([late.signal, this.#stop.signal]))
      .then(() => false)
    const answer = ping(this.#database.direct).then(
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
