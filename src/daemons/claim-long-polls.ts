import { type Clock, Failure, FairSemaphore } from '../base/index.ts'
import type { Database } from '../database/index.ts'
import { type AwaitedGroup, countClaimable, findDraining } from './sql.ts'

/** What waiting needs. */
export interface ClaimLongPollsDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Pick<Clock, 'sleep'>
}

/** Who waits, and for what. */
export interface ClaimWait extends Omit<AwaitedGroup, 'atMost'> {
  readonly environmentId: string
  readonly daemonId: string
}

interface Waiter extends ClaimWait {
  /** Ends the wait; whether it is worth claiming. */
  readonly end: (isWorth: boolean) => void
  readonly fail: (error: unknown) => void
}

/** How often the groups that somebody waits for are looked at, all of them in one statement. */
const POLL_INTERVAL_MS = 1_000
/** Daemons that wait in one process at once; environments share the places. */
const WAITERS_MAX = 1_000

const TOO_MANY_WAITERS = 'as many daemons of this environment wait here as may; ask again, or another server'

/**
 * Where daemons wait for runs: one look per interval for all of this process, and none while nobody waits. A look wakes as
 * many as there are runs for, in the order in which they came; the others hear nothing of it. Daemons that have begun to
 * drain go. A wait holds no connection.
 */
export class ClaimLongPolls {
  readonly #deps: ClaimLongPollsDeps
  readonly #waiters = new Set<Waiter>()
  readonly #places = new FairSemaphore(WAITERS_MAX)
  #isPolling = false
  #isClosed = false

  constructor(deps: ClaimLongPollsDeps) {
    this.#deps = deps
  }

  /**
   * Waits until there may be a run to claim.
   *
   * @returns `false` when there was none until the time was up, the signal aborted, the daemon drained, or the waits closed
   * @throws Failure RATE_LIMITED when the environment has its share of the places; what a look threw, and the waiting call is to ask again
   */
  async wait(who: ClaimWait, ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isClosed) return false
    const release = this.#places.tryAcquire(who.environmentId)
    if (release === undefined) throw new Failure('RATE_LIMITED', TOO_MANY_WAITERS, { retryAfterSeconds: 5 })
    const { promise, resolve: end, reject: fail } = Promise.withResolvers<boolean>()
    const waiter = { ...who, end, fail }
    const over = new AbortController()
    void this.#deps.clock.sleep(ms, AbortSignal.any([signal, over.signal])).then(() => end(false))
    this.#waiters.add(waiter)
    void this.#pollWhileAwaited()
    try {
      return await promise
    } finally {
      this.#waiters.delete(waiter)
      release()
      over.abort()
    }
  }

  /** Ends the waits of a daemon that takes no more; in other processes the next look does. */
  release(daemonId: string): void {
    for (const waiter of this.#waiters) if (waiter.daemonId === daemonId) waiter.end(false)
  }

  /** Ends every wait, and those that are to come at once. */
  close(): void {
    this.#isClosed = true
    for (const waiter of this.#waiters) waiter.end(false)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  async #pollWhileAwaited(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    while (this.#waiters.size > 0) {
      await this.#deps.clock.sleep(POLL_INTERVAL_MS)
      await this.#pollOnce()
    }
    this.#isPolling = false
  }

  async #pollOnce(): Promise<void> {
    const waiters = [...this.#waiters]
    if (waiters.length === 0) return
    const { pool: direct } = this.#deps.database
    const lines = groupWaiters(waiters)
    try {
      const resting = new Set(await findDraining(direct, waiters.map(daemonKey)))
      for (const waiter of waiters) if (resting.has(waiter.daemonId)) waiter.end(false)
      const awaited = lines.map(({ waiters: { length: atMost }, ...line }) => ({ ...line, atMost }))
      const counts = await countClaimable(direct, awaited)
      for (const [place, line] of lines.entries())
        for (const waiter of line.waiters.slice(0, counts[place] ?? 0)) waiter.end(true)
    } catch (error) {
      for (const waiter of waiters) waiter.fail(error)
    }
  }
}

/** Those who wait for the same, in the order in which they came. */
interface WaiterGroup extends Pick<ClaimWait, 'group' | 'regions'> {
  readonly waiters: Waiter[]
}

function groupWaiters(waiters: readonly Waiter[]): readonly WaiterGroup[] {
  const lines = new Map<string, WaiterGroup>()
  for (const waiter of waiters) {
    const { group, regions } = waiter
    const name = `${group} ${regions}`
    const line = lines.get(name) ?? { group, regions, waiters: [] }
    line.waiters.push(waiter)
    lines.set(name, line)
  }
  return [...lines.values()]
}

function daemonKey({ environmentId, daemonId: id }: Waiter) {
  return { environmentId, id }
}
