import { type Clock, Failure, type Slab } from '../../base/index.ts'
import type { Authenticator } from '../../tenancy/index.ts'
import { callerOf } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { RequestContext } from '../request-context.ts'

/** With the cache TTL of authentication (500 ms), less than a second from a revocation to the end of the request. */
const INTERVAL_MS = 400

/**
 * Authenticates requests in progress again for as long as they last: a stream, a long poll or a streamed body ends when
 * its token is revoked or expires. Requests of one token and environment are authenticated together; those that end
 * within an interval are never looked at, and no timer runs while there are none.
 */
export class Reauthenticator implements Disposable {
  readonly #authenticator: Pick<Authenticator, 'authenticate'>
  readonly #clock: Clock
  readonly #openExchanges: Slab<Exchange>
  readonly #disposed = new AbortController()
  #isRunning = false

  constructor(authenticator: Pick<Authenticator, 'authenticate'>, clock: Clock, openExchanges: Slab<Exchange>) {
    this.#authenticator = authenticator
    this.#clock = clock
    this.#openExchanges = openExchanges
  }

  /** Starts the loop, which ends when no request is open. */
  start(): void {
    if (!this.#isRunning) void this.#run()
  }

  [Symbol.dispose](): void {
    this.#disposed.abort()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (!this.#openExchanges.isEmpty && !this.#disposed.signal.aborted) {
      await this.#clock.sleep(INTERVAL_MS, this.#disposed.signal)
      for (const contexts of this.#longRequests()) await this.#reauthenticate(contexts)
    }
    this.#isRunning = false
  }

  /** The requests that have lasted an interval, by token and environment. */
  #longRequests(): Iterable<readonly RequestContext[]> {
    const before = performance.now() - INTERVAL_MS
    const contexts = [...this.#openExchanges].flatMap(({ context }) =>
      context.token === undefined || context.isDone || context.startedMs > before ? [] : [context],
    )
    return Map.groupBy(contexts, (context) => `${context.token?.hash} ${callerOf(context).environmentId}`).values()
  }

  async #reauthenticate(contexts: readonly RequestContext[]): Promise<void> {
    const [first] = contexts
    if (first === undefined) return
    try {
      await this.#authenticator.authenticate(first.token, callerOf(first).environmentId)
    } catch (error) {
      // An unavailable database revokes nothing: the next interval tries again.
      if (error instanceof Failure) for (const context of contexts) context.interrupt(error)
    }
  }
}
