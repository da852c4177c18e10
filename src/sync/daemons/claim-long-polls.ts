import { type Clock, Failure, LongPollHub, withTimeout } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { FairSemaphore } from '../../foundation/fair/index.ts'
import { type AwaitedGroup, countClaimable, findDraining } from './sql.ts'

/** What long polls need. */
export interface ClaimLongPollsDeps {
  readonly database: Pick<Database, 'pool'>
  readonly clock: Pick<Clock, 'sleep'>
}

/** A waiting daemon and the runs it waits for. */
export interface ClaimWait extends Omit<AwaitedGroup, 'atMost'> {
  readonly environmentId: string
  readonly daemonId: string
}

interface Waiter extends ClaimWait {
  /** Ends the wait; whether a claim may find a run. */
  readonly end: (mayClaim: boolean) => void
  readonly fail: (error: unknown) => void
}

/** How often the queue is polled for all waiting daemons together. */
const POLL_INTERVAL_MS = 1_000
/** Daemons that wait in one process at once, shared fairly between environments. */
const WAITERS_MAX = 1_000

const TOO_MANY_WAITERS = 'too many daemons of this environment are waiting on this server; retry later'

/**
 * Long polls of daemons for runs to claim. A poll wakes as many daemons as there are runs for, in the order of their arrival;
 * the others go on waiting. Daemons that have begun to drain are released. A wait holds no connection.
 */
export class ClaimLongPolls {
  readonly #deps: ClaimLongPollsDeps
  readonly #hub: LongPollHub<Waiter>
  readonly #places = new FairSemaphore(WAITERS_MAX)
  #isClosed = false

  constructor(deps: ClaimLongPollsDeps) {
    this.#deps = deps
    this.#hub = new LongPollHub({ ...deps, intervalMs: POLL_INTERVAL_MS, poll: (waiters) => this.#poll(waiters) })
  }

  /**
   * Waits until there may be a run to claim.
   *
   * @returns `false` when there was none until the time was up, the signal aborted, the daemon drained, or the waits closed
   * @throws Failure RATE_LIMITED when the environment has its share of the waiters; an error of a poll, after which the caller may ask again
   */
  async wait(who: ClaimWait, ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isClosed) return false
    const release = this.#places.tryAcquire(who.environmentId)
    if (release === undefined) throw new Failure('RATE_LIMITED', TOO_MANY_WAITERS, { retryAfterSeconds: 5 })
    const { promise, resolve: end, reject: fail } = Promise.withResolvers<boolean>()
    const waiter = { ...who, end, fail }
    this.#hub.add(waiter)
    try {
      return (await withTimeout(this.#deps.clock, promise, ms, signal)) ?? false
    } finally {
      this.#hub.remove(waiter)
      release()
    }
  }

  /** Ends the waits of a daemon that claims no more; those in other processes end with their next poll. */
  endWaitsOf(daemonId: string): void {
    for (const waiter of this.#hub.waiters) if (waiter.daemonId === daemonId) waiter.end(false)
  }

  /** Ends every wait, and further ones as they begin. */
  close(): void {
    this.#isClosed = true
    for (const waiter of this.#hub.waiters) waiter.end(false)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  async #poll(waiters: readonly Waiter[]): Promise<void> {
    const { pool } = this.#deps.database
    const draining = new Set(await findDraining(pool, waiters.map(daemonKey)))
    for (const waiter of waiters) if (draining.has(waiter.daemonId)) waiter.end(false)
    const groups = groupWaiters(waiters)
    const counts = await countClaimable(
      pool,
      groups.map(({ waiters: { length: atMost }, ...group }) => ({ ...group, atMost })),
    )
    for (const [index, group] of groups.entries())
      for (const waiter of group.waiters.slice(0, counts[index] ?? 0)) waiter.end(true)
  }
}

/** Daemons that wait for the same runs, in the order of their arrival. */
interface WaiterGroup extends Pick<ClaimWait, 'group' | 'regions'> {
  readonly waiters: Waiter[]
}

function groupWaiters(waiters: readonly Waiter[]): readonly WaiterGroup[] {
  const groups = new Map<string, WaiterGroup>()
  for (const waiter of waiters) {
    const { group, regions } = waiter
    const key = `${group} ${regions}`
    const found = groups.get(key) ?? { group, regions, waiters: [] }
    found.waiters.push(waiter)
    groups.set(key, found)
  }
  return [...groups.values()]
}

function daemonKey({ environmentId, daemonId: id }: Waiter) {
  return { environmentId, id }
}
