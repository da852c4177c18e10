import { type Clock, Failure } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import { getRun, isWaiting, type RunView, withWaitStates } from './read-runs.ts'
import type { Run } from './run.ts'
import { findRunVersions } from './sql/run.ts'

/** What following runs needs. */
export interface RunWatchDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
}

/** How often the runs that are followed are looked at: one statement for all, and one for all of them that wait. */
const POLL_INTERVAL_MS = 500
/** A watcher hears something at least so often. */
const SILENCE_MAX_MS = 15_000
/** Longest a run is followed in one go: who may read it is asked again from time to time. */
const WATCH_MAX_MS = 3_600_000

const FOLLOW_AGAIN = 'the run was followed for an hour; follow it again'

/** One run that somebody follows. */
interface WatchedRun {
  run: RunView
  /** Why it cannot be followed any more. */
  failure: unknown
  watchers: number
  /** Resolves at the next change, and is then another one. */
  changed: PromiseWithResolvers<void>
}

/**
 * Follows runs for all watchers of this process: one look per interval, however many they are, and none while there are
 * none. Nothing is kept beyond the last watcher.
 */
export class RunWatch {
  readonly #deps: RunWatchDeps
  readonly #watched = new Map<string, WatchedRun>()
  #isLooking = false

  constructor(deps: RunWatchDeps) {
    this.#deps = deps
  }

  /**
   * The run as it is and after every change, also of what it waits for, until it is over; changes between two looks are one. `undefined` says that
   * nothing has changed for a while.
   *
   * @param signal ends it within moments, without a failure
   * @throws Failure RESOURCE_NOT_FOUND, also when the run is removed;
   *   DEADLINE_EXCEEDED after an hour; whatever the database failed with
   */
  async *watch(environmentId: string, id: string, signal: AbortSignal): AsyncGenerator<RunView | undefined> {
    const watched = this.#join(await getRun(this.#deps.database.pool, environmentId, id))
    const endsAtMs = this.#deps.clock.monotonicMs() + WATCH_MAX_MS
    try {
      for (let seen: Run | undefined; !isFinalRun(seen) && !signal.aborted; ) {
        if (watched.failure !== undefined) throw watched.failure
        if (this.#deps.clock.monotonicMs() >= endsAtMs) throw new Failure('DEADLINE_EXCEEDED', FOLLOW_AGAIN)
        const isNew = watched.run !== seen
        seen = watched.run
        yield isNew ? seen : undefined
        const isCurrent = watched.run === seen && watched.failure === undefined
        if (isCurrent && !isFinalRun(seen)) await this.#untilChange(watched, signal)
      }
    } finally {
      this.#leave(watched)
    }
  }

  #join(run: RunView): WatchedRun {
    const watched = this.#watched.get(run.id) ?? {
      run,
      failure: undefined,
      watchers: 0,
      changed: Promise.withResolvers<void>(),
    }
    watched.watchers++
    if (run.version > watched.run.version) updateView(watched, run)
    this.#watched.set(run.id, watched)
    void this.#look()
    return watched
  }

  #leave(watched: WatchedRun): void {
    watched.watchers--
    if (watched.watchers === 0) this.#forget(watched)
  }

  #forget(watched: WatchedRun): void {
    if (this.#watched.get(watched.run.id) === watched) this.#watched.delete(watched.run.id)
  }

  async #untilChange({ changed }: WatchedRun, signal: AbortSignal): Promise<void> {
    const heard = new AbortController()
    await Promise.race([
      changed.promise,
      this.#deps.clock.sleep(SILENCE_MAX_MS, AbortSignal.any([signal, heard.signal])),
    ])
    heard.abort()
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    while (this.#watched.size > 0) {
      await this.#deps.clock.sleep(POLL_INTERVAL_MS)
      if (this.#watched.size > 0) await this.#lookOnce([...this.#watched.values()])
    }
    this.#isLooking = false
  }

  async #lookOnce(all: readonly WatchedRun[]): Promise<void> {
    try {
      const runs = all.map(({ run }) => run)
      const versions = await findRunVersions(this.#deps.database.pool, runs)
      for (const watched of all) await this.#compare(watched, versions.get(watched.run.id))
      await this.#compareWaits(all.filter(({ run, failure }) => failure === undefined && isWaiting(run)))
    } catch (error) {
      for (const watched of all) this.#fail(watched, error)
    }
  }

  async #compare(watched: WatchedRun, version: number | undefined): Promise<void> {
    const { environmentId, id, version: known } = watched.run
    if (version === known) return
    try {
      updateView(watched, await getRun(this.#deps.database.pool, environmentId, id))
    } catch (error) {
      this.#fail(watched, error)
    }
  }

  /** What a run waits for changes without a change of the run; that it waits no more is one. */
  async #compareWaits(all: readonly WatchedRun[]): Promise<void> {
    const runs = all.map(({ run }) => run)
    const shown = await withWaitStates(this.#deps.database.pool, runs)
    for (const [place, watched] of all.entries()) {
      const [before, after] = [runs[place], shown[place]]
      if (after?.waiting === undefined || watched.run !== before) continue
      if (JSON.stringify(after.waiting) !== JSON.stringify(before.waiting)) updateView(watched, after)
    }
  }

  /** Whoever waits is told, and asks again when they like. */
  #fail(watched: WatchedRun, failure: unknown): void {
    this.#forget(watched)
    watched.failure = failure
    notifyWatchers(watched)
  }
}

function updateView(watched: WatchedRun, run: RunView): void {
  watched.run = run
  notifyWatchers(watched)
}

function notifyWatchers(watched: WatchedRun): void {
  const { changed } = watched
  watched.changed = Promise.withResolvers<void>()
  changed.resolve()
}

function isFinalRun(run: Run | undefined): boolean {
  return run !== undefined && ['completed', 'partially_completed', 'failed', 'stopped', 'skipped'].includes(run.status)
}
