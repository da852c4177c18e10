import { type Clock, Failure, LongPollHub, momentOfId, withTimeout } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { type CallLogFilter, findScanEnd, type LogEntryRecord, listLogEntriesSince } from './sql.ts'
import type { CallLogWriter } from './writer.ts'

/** What watching needs. */
export interface CallLogWatchDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Clock
  readonly writer: Pick<CallLogWriter, 'flush'>
}

const POLL_INTERVAL_MS = 500
/** Keep-alive: longest time between two answers to a watcher. */
const KEEP_ALIVE_MS = 15_000
/** Longest watch: the caller's access is checked again when it asks again. */
const WATCH_MAX_MS = 3_600_000
/** Entries are stored up to this long after the moment in their id. */
const LATE_MS = 5_000
const ENTRIES_PER_POLL = 500

/** Streams new entries to all watchers of this process: one poll per interval serves all, and there is none without watchers. */
export class CallLogWatch {
  readonly #deps: CallLogWatchDeps
  readonly #hub: LongPollHub<Watcher>

  constructor(deps: CallLogWatchDeps) {
    this.#deps = deps
    this.#hub = new LongPollHub({ ...deps, intervalMs: POLL_INTERVAL_MS, poll: (watchers) => this.#poll(watchers) })
  }

  /**
   * Entries from now on, in the order in which they are stored. `undefined` is a keep-alive: the first answer, and one when there were
   * no entries for a while.
   *
   * @param signal ends it within moments, without an error
   * @throws Failure DEADLINE_EXCEEDED after an hour; errors of the database
   */
  async *watch(
    environmentId: string,
    filter: Omit<CallLogFilter, 'since' | 'until'>,
    signal: AbortSignal,
  ): AsyncGenerator<LogEntryRecord | undefined> {
    const { clock } = this.#deps
    const watcher = new Watcher(environmentId, filter, clock.now())
    const endsAtMs = clock.monotonicMs() + WATCH_MAX_MS
    this.#hub.add(watcher)
    try {
      // Tells the caller that the watch has begun.
      yield undefined
      while (!signal.aborted) {
        if (clock.monotonicMs() >= endsAtMs)
          throw new Failure('DEADLINE_EXCEEDED', 'the request log was followed for an hour; follow it again')
        const entries = watcher.take()
        yield* entries
        if (entries.length > 0) continue
        if ((await withTimeout(clock, watcher.changed, KEEP_ALIVE_MS, signal)) === undefined && !signal.aborted)
          yield undefined
      }
    } finally {
      this.#hub.remove(watcher)
    }
  }

  async #poll(watchers: readonly Watcher[]): Promise<void> {
    const { database, clock, writer } = this.#deps
    await writer.flush()
    for (const watcher of watchers.filter(({ isIdle }) => isIdle)) {
      const { environmentId, filter, since } = watcher
      const range = { ...filter, since }
      const isText = filter.pathContains !== undefined
      const to = isText ? await findScanEnd(database.pool, environmentId, range, 'asc') : undefined
      const found = await listLogEntriesSince(database.pool, environmentId, range, { limit: ENTRIES_PER_POLL, to })
      const seenTo = to === undefined ? new Date(clock.now().getTime() - LATE_MS) : momentOfId(to)
      watcher.add(found, found.length === ENTRIES_PER_POLL ? undefined : seenTo)
    }
  }
}

class Watcher {
  readonly environmentId: string
  readonly filter: CallLogFilter
  /** Entries before it have been seen. */
  since: Date
  readonly #startedAt: Date
  /** Entries after it that have been sent: later ones may be stored below them. */
  #seen = new Map<string, Date>()
  #waiting: LogEntryRecord[] = []
  #failure: unknown
  #change = Promise.withResolvers<true>()

  constructor(environmentId: string, filter: CallLogFilter, now: Date) {
    this.environmentId = environmentId
    this.filter = filter
    this.since = now
    this.#startedAt = now
  }

  get changed(): Promise<true> {
    return this.#change.promise
  }

  /** Whether everything was taken: a slow reader is not read ahead for. */
  get isIdle(): boolean {
    return this.#waiting.length === 0
  }

  /** @param seenTo undefined: there are more, after the last one found */
  add(found: readonly LogEntryRecord[], seenTo: Date | undefined): void {
    const fresh = found.filter(({ id }) => !this.#seen.has(id))
    for (const { id } of fresh) this.#seen.set(id, momentOfId(id))
    const last = found.at(-1)
    const since = seenTo ?? (last === undefined ? this.since : momentOfId(last.id))
    this.since = new Date(Math.max(since.getTime(), this.#startedAt.getTime()))
    for (const [id, at] of this.#seen) if (at < this.since) this.#seen.delete(id)
    if (fresh.length === 0) return
    this.#waiting.push(...fresh)
    this.#notify()
  }

  take(): readonly LogEntryRecord[] {
    if (this.#failure !== undefined) throw this.#failure
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }

  fail(error: unknown): void {
    this.#failure = error
    this.#notify()
  }

  #notify(): void {
    const { resolve } = this.#change
    this.#change = Promise.withResolvers<true>()
    resolve(true)
  }
}
