import { type Clock, Failure, FairPlaces } from '../base/index.ts'
import { type AwaitedGroup, countClaimable, type Database, findResting } from '../storage/index.ts'

/** What waiting needs. */
export interface ClaimWaitsDeps {
  readonly database: Pick<Database, 'direct'>
  readonly clock: Pick<Clock, 'sleep'>
}

/** Who waits, and for what. */
export interface Waiting extends Omit<AwaitedGroup, 'atMost'> {
  readonly environmentId: string
  readonly daemonId: string
}

interface Waiter extends Waiting {
  /** Ends the wait; whether it is worth claiming. */
  readonly end: (isWorth: boolean) => void
  readonly fail: (error: unknown) => void
}

/** How often the groups that somebody waits for are looked at, all of them in one statement. */
const LOOK_INTERVAL_MS = 1_000
/** Daemons that wait in one process at once; environments share the places. */
const WAITERS_MAX = 1_000

const NO_PLACE = 'as many daemons of this environment wait here as may; ask again, or another server'

/**
 * Where daemons wait for runs: one look per interval for all of this process, and none while nobody waits. A look wakes as
 * many as there are runs for, in the order in which they came; the others hear nothing of it. Daemons that have begun to
 * drain go. A wait holds no connection.
 */
export class ClaimWaits {
  readonly #deps: ClaimWaitsDeps
  readonly #waiters = new Set<Waiter>()
  readonly #places = new FairPlaces(WAITERS_MAX)
  #isLooking = false
  #isClosed = false

  constructor(deps: ClaimWaitsDeps) {
    this.#deps = deps
  }

  /**
   * Waits until there may be a run to claim.
   *
   * @returns `false` when there was none until the time was up, the signal aborted, the daemon drained, or the waits closed
   * @throws Failure RATE_LIMITED when the environment has its share of the places; what a look threw, and the waiting call is to ask again
   */
  async wait(who: Waiting, ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isClosed) return false
    const release = this.#places.take(who.environmentId)
    if (release === undefined) throw new Failure('RATE_LIMITED', NO_PLACE, { retryAfterSeconds: 5 })
    const { promise, resolve: end, reject: fail } = Promise.withResolvers<boolean>()
    const waiter = { ...who, end, fail }
    const over = new AbortController()
    void this.#deps.clock.sleep(ms, AbortSignal.any([signal, over.signal])).then(() => end(false))
    this.#waiters.add(waiter)
    void this.#look()
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

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    while (this.#waiters.size > 0) {
      await this.#deps.clock.sleep(LOOK_INTERVAL_MS)
      await this.#lookOnce()
    }
    this.#isLooking = false
  }

  async #lookOnce(): Promise<void> {
    const waiters = [...this.#waiters]
    if (waiters.length === 0) return
    const { direct } = this.#deps.database
    const lines = linesOf(waiters)
    try {
      const resting = new Set(await findResting(direct, waiters.map(daemonOf)))
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
interface Line extends Pick<Waiting, 'group' | 'regions'> {
  readonly waiters: Waiter[]
}

function linesOf(waiters: readonly Waiter[]): readonly Line[] {
  const lines = new Map<string, Line>()
  for (const waiter of waiters) {
    const { group, regions } = waiter
    const name = `${group} ${regions}`
    const line = lines.get(name) ?? { group, regions, waiters: [] }
    line.waiters.push(waiter)
    lines.set(name, line)
  }
  return [...lines.values()]
}

function daemonOf({ environmentId, daemonId: id }: Waiter) {
  return { environmentId, id }
}
