import { type Clock, PollLoop, type Random } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { SHARDS } from './shard-cursors.ts'
import { findOldestDueAge } from './sql/due-trigger.ts'

const POLL_INTERVAL_MS = 5_000
/**
 * A tick that waits longer means that no worker fires it: none runs, for one region at least, or none gets through. Under
 * load ticks are late by a second, after an outage they are caught up within half a minute.
 */
export const STALLED_AFTER_SECONDS = 60

/** Monitors whether ticks fire, in any worker: the age of the oldest due tick, polled every few seconds. */
export class SchedulerMonitor implements AsyncDisposable {
  readonly #database: Pick<Database, 'pool'>
  readonly #loop: PollLoop
  readonly #listeners: ((isStalled: boolean) => void)[] = []
  #ageSeconds = 0
  /** When polls began to fail; undefined: the age is current. */
  #failingSinceMs: number | undefined
  #wasStalled = false

  constructor(deps: { readonly database: Pick<Database, 'pool'>; readonly clock: Clock; readonly random: Random }) {
    this.#database = deps.database
    const runOnce = async () => {
      await this.poll()
      return false
    }
    this.#loop = new PollLoop(
      { ...deps, onError: () => undefined },
      { name: 'scheduler-monitor', intervalMs: POLL_INTERVAL_MS, runOnce },
    )
  }

  /** Begins to poll; later calls do nothing. */
  start(): void {
    this.#loop.start()
  }

  /** Grows while the database cannot be asked: then no tick fires either. */
  get oldestDueAgeSeconds(): number {
    const since = this.#failingSinceMs
    return this.#ageSeconds + (since === undefined ? 0 : (performance.now() - since) / 1_000)
  }

  get isStalled(): boolean {
    return this.oldestDueAgeSeconds > STALLED_AFTER_SECONDS
  }

  /** Calls back now and at every change. */
  subscribe(listener: (isStalled: boolean) => void): void {
    this.#listeners.push(listener)
    listener(this.isStalled)
  }

  /** One poll. Never rejects. */
  async poll(): Promise<void> {
    const startedMs = performance.now()
    try {
      this.#ageSeconds = await findOldestDueAge(this.#database.pool, SHARDS)
      this.#failingSinceMs = undefined
    } catch {
      this.#failingSinceMs ??= startedMs
    }
    this.#notifyListeners()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }

  #notifyListeners(): void {
    const { isStalled } = this
    if (isStalled === this.#wasStalled) return
    this.#wasStalled = isStalled
    for (const listener of this.#listeners) listener(isStalled)
  }
}
