import { type Clock, Failure, LongPollHub, withTimeout } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { getRun, isQueued, mayWait, type RunView, withWaitStates } from './read-runs.ts'
import { isFinalStatus } from './run.ts'
import { findRunVersions } from './sql/run.ts'

/** What watching runs needs. */
export interface RunWatchDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
}

/** How often watched runs are polled: one statement for all of them, and one for those that may wait. */
const POLL_INTERVAL_MS = 500
/** Keep-alive: longest time between two answers to a watcher. */
const KEEP_ALIVE_MS = 15_000
/** Longest watch: the caller's access is checked again when it asks again. */
const WATCH_MAX_MS = 3_600_000

const WATCH_ENDED = 'the run was followed for an hour; follow it again'

/** Streams runs to all watchers of this process: one poll per interval serves all, and there is none without watchers. */
export class RunWatch {
  readonly #deps: RunWatchDeps
  readonly #watched = new Map<string, WatchedRun>()
  readonly #hub: LongPollHub<WatchedRun>

  constructor(deps: RunWatchDeps) {
    this.#deps = deps
    this.#hub = new LongPollHub({ ...deps, intervalMs: POLL_INTERVAL_MS, poll: (watched) => this.#poll(watched) })
  }

  /**
   * The run as it is and after every change, also of what it waits for, until it has ended; changes between two polls are
   * one. `undefined` is a keep-alive: nothing has changed for a while.
   *
   * @param signal ends it within moments, without an error
   * @throws Failure RESOURCE_NOT_FOUND, also when the run is removed; DEADLINE_EXCEEDED after an hour; errors of the database
   */
  async *watch(environmentId: string, id: string, signal: AbortSignal): AsyncGenerator<RunView | undefined> {
    const { database, clock } = this.#deps
    const watched = this.#join(await getRun(database.pool, environmentId, id))
    const endsAtMs = clock.monotonicMs() + WATCH_MAX_MS
    try {
      for (let seen: RunView | undefined; !hasEnded(seen) && !signal.aborted; ) {
        watched.throwIfFailed()
        if (clock.monotonicMs() >= endsAtMs) throw new Failure('DEADLINE_EXCEEDED', WATCH_ENDED)
        const isNew = watched.view !== seen
        seen = watched.view
        yield isNew ? seen : undefined
        if (watched.isCurrent(seen) && !hasEnded(seen)) await withTimeout(clock, watched.changed, KEEP_ALIVE_MS, signal)
      }
    } finally {
      this.#leave(watched)
    }
  }

  #join(view: RunView): WatchedRun {
    const watched = this.#watched.get(view.id) ?? new WatchedRun(view, (failed) => this.#forget(failed))
    watched.watchers++
    if (view.version > watched.view.version) watched.update(view)
    this.#watched.set(view.id, watched)
    this.#hub.add(watched)
    return watched
  }

  #leave(watched: WatchedRun): void {
    watched.watchers--
    if (watched.watchers === 0) this.#forget(watched)
  }

  #forget(watched: WatchedRun): void {
    this.#hub.remove(watched)
    if (this.#watched.get(watched.view.id) === watched) this.#watched.delete(watched.view.id)
  }

  async #poll(all: readonly WatchedRun[]): Promise<void> {
    const { pool } = this.#deps.database
    const versions = await findRunVersions(
      pool,
      all.map(({ view }) => view),
    )
    const changed = all.filter(({ view }) => versions.get(view.id) !== view.version)
    for (const watched of changed) await this.#reload(watched)
    await this.#compareWaitStates(all.filter((watched) => watched.isCurrent(watched.view) && mayWait(watched.view)))
  }

  async #reload(watched: WatchedRun): Promise<void> {
    const { environmentId, id } = watched.view
    try {
      watched.update(await getRun(this.#deps.database.pool, environmentId, id))
    } catch (error) {
      watched.fail(error)
    }
  }

  /** What a run waits for changes without a change of the run; that a queued one no longer waits is a change of the run. */
  async #compareWaitStates(all: readonly WatchedRun[]): Promise<void> {
    const before = all.map(({ view }) => view)
    const after = await withWaitStates(this.#deps.database.pool, before)
    for (const [index, watched] of all.entries()) {
      const [old, current] = [before[index], after[index]]
      if (old === undefined || current === undefined || !watched.isCurrent(old)) continue
      if (current.waiting === undefined && isQueued(old)) continue
      if (JSON.stringify(current.waiting) !== JSON.stringify(old.waiting)) watched.update(current)
    }
  }
}

/** A run with at least one watcher, as the last poll saw it. */
class WatchedRun {
  view: RunView
  watchers = 0
  readonly #onFail: (watched: WatchedRun) => void
  #failure: unknown
  #change = Promise.withResolvers<void>()

  constructor(view: RunView, onFail: (watched: WatchedRun) => void) {
    this.view = view
    this.#onFail = onFail
  }

  /** Resolves with the next change or failure. */
  get changed(): Promise<void> {
    return this.#change.promise
  }

  isCurrent(view: RunView): boolean {
    return this.view === view && this.#failure === undefined
  }

  update(view: RunView): void {
    this.view = view
    this.#notify()
  }

  /** Ends the watch for all watchers; they may begin another. */
  fail(failure: unknown): void {
    this.#failure = failure
    this.#onFail(this)
    this.#notify()
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  #notify(): void {
    const { resolve } = this.#change
    this.#change = Promise.withResolvers<void>()
    resolve()
  }
}

function hasEnded(view: RunView | undefined): boolean {
  return view !== undefined && isFinalStatus(view.status)
}
