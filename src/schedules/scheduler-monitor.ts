import type { Clock } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import { findOldestDueAge } from '../runs/index.ts'
import { SHARDS } from './shard-cursors.ts'

/** What watching the schedule needs. */
export interface SchedulerMonitorDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Pick<Clock, 'sleep'>
}

/** How often the schedule is looked at. */
const POLL_INTERVAL_MS = 5_000
/**
 * A tick that waits longer than this means that nobody fires: no worker is there, for one region at least, or none gets
 * through. Under load ticks are late by a second, after an outage they are caught up within half a minute.
 */
export const STALLED_AFTER_SECONDS = 60

/**
 * Watches from outside whether ticks fire, whoever fires them: how long ago the oldest tick that waits came due. Looks every
 * few seconds, however many ask.
 */
export class SchedulerMonitor implements AsyncDisposable {
  readonly #deps: SchedulerMonitorDeps
  readonly #stop = new AbortController()
  readonly #listeners: ((isStalled: boolean) => void)[] = []
  #running: Promise<void> | undefined
  #ageSeconds = 0
  /** Since when the age is not known any better. */
  #unknownSinceMs: number | undefined
  #wasStalled = false

  constructor(deps: SchedulerMonitorDeps) {
    this.#deps = deps
  }

  /** Begins to look; later calls do nothing. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Grows while the database cannot be asked: then nothing fires either. */
  get oldestDueAgeSeconds(): number {
    const since = this.#unknownSinceMs
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

  /** One look. Never rejects. */
  async poll(): Promise<void> {
    const { database } = this.#deps
    const askedMs = performance.now()
    try {
      this.#ageSeconds = await findOldestDueAge(database.pool, SHARDS)
      this.#unknownSinceMs = undefined
    } catch {
      this.#unknownSinceMs ??= askedMs
    }
    this.#tell()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.poll()
      await this.#deps.clock.sleep(POLL_INTERVAL_MS, this.#stop.signal)
    }
  }

  #tell(): void {
    const { isStalled } = this
    if (isStalled === this.#wasStalled) return
    this.#wasStalled = isStalled
    for (const listener of this.#listeners) listener(isStalled)
  }
}
