import type { Clock } from './clock.ts'
import { detachFromRequest } from './request-scope.ts'

/** A caller that waits for news. */
export interface LongPollWaiter {
  /** Ends the wait with an error. */
  readonly fail: (error: unknown) => void
}

/** What a hub polls, and how often. */
export interface LongPollHubOptions<Waiter extends LongPollWaiter> {
  readonly clock: Pick<Clock, 'sleep'>
  readonly intervalMs: number
  /** Looks for news for all waiters in one go; an error that it throws ends their waits. */
  poll(waiters: readonly Waiter[]): Promise<void>
}

/** Long-poll hub: one poll per interval serves every waiter of this process, and there is none without waiters. */
export class LongPollHub<Waiter extends LongPollWaiter> {
  readonly #options: LongPollHubOptions<Waiter>
  readonly #waiters = new Set<Waiter>()
  #isPolling = false

  constructor(options: LongPollHubOptions<Waiter>) {
    this.#options = options
  }

  /** Everyone who waits, in the order of arrival. */
  get waiters(): ReadonlySet<Waiter> {
    return this.#waiters
  }

  /** The first poll that serves the waiter is at most an interval away. Adding it again changes nothing. */
  add(waiter: Waiter): void {
    this.#waiters.add(waiter)
    // One poll serves the requests of all waiters.
    if (!this.#isPolling) void detachFromRequest(() => this.#pollWhileAwaited())
  }

  remove(waiter: Waiter): void {
    this.#waiters.delete(waiter)
  }

  async #pollWhileAwaited(): Promise<void> {
    this.#isPolling = true
    while (this.#waiters.size > 0) {
      await this.#options.clock.sleep(this.#options.intervalMs)
      await this.#poll([...this.#waiters])
    }
    this.#isPolling = false
  }

  async #poll(waiters: readonly Waiter[]): Promise<void> {
    if (waiters.length === 0) return
    try {
      await this.#options.poll(waiters)
    } catch (error) {
      for (const waiter of waiters) waiter.fail(error)
    }
  }
}
