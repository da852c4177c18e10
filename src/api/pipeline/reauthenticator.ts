import { type Clock, Failure, type Slab } from '../../base/index.ts'
import type { Admission } from '../caller.ts'
import type { Exchange } from '../exchange.ts'
import type { RequestContext } from '../request-context.ts'

/** With the cache TTL of admission (500 ms), less than a second from a revocation to the end of the call. */
const INTERVAL_MS = 400

/**
 * Admits the calls under way again, for as long as they last: a stream, a long poll or a body that passes through ends
 * when its token is revoked or expires. Calls of one token and environment are admitted together; calls that end within
 * an interval are never looked at, and nothing runs while there are none.
 */
export class Reauthenticator implements Disposable {
  readonly #admission: Admission
  readonly #clock: Clock
  readonly #openExchanges: Slab<Exchange>
  readonly #disposed = new AbortController()
  #isRunning = false

  constructor(admission: Admission, clock: Clock, openExchanges: Slab<Exchange>) {
    this.#admission = admission
    this.#clock = clock
    this.#openExchanges = openExchanges
  }

  /** Goes on until no call is open. */
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
      for (const calls of this.#longCalls()) await this.#admitAgain(calls)
    }
    this.#isRunning = false
  }

  /** The calls that have lasted an interval, by token and environment. */
  #longCalls(): Iterable<readonly RequestContext[]> {
    const before = performance.now() - INTERVAL_MS
    const calls = [...this.#openExchanges].flatMap(({ call }) =>
      call.token === undefined || call.isDone || call.startedMs > before ? [] : [call],
    )
    return Map.groupBy(calls, ({ token, principal }) => `${token?.hash} ${principal.environmentId}`).values()
  }

  async #admitAgain(calls: readonly RequestContext[]): Promise<void> {
    const [first] = calls
    if (first === undefined) return
    try {
      await this.#admission.authenticate(first.token, first.principal.environmentId)
    } catch (error) {
      // A database that is away revokes nothing: the next interval asks again.
      if (error instanceof Failure) for (const call of calls) call.interrupt(error)
    }
  }
}
