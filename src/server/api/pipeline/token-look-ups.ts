import { Failure } from '../../../foundation/base/index.ts'
import { FairQueue } from '../../../foundation/fair/index.ts'

/** Look-ups at the same time, so that invalid tokens never hold more connections of the database. */
const CONCURRENT_MAX = 2
/** Look-ups of one client address that wait. */
const WAITING_PER_ADDRESS_MAX = 2_000

/** A token that this process does not know to be valid. */
interface UnknownToken {
  /** Client address. */
  readonly address: string
  /** Equal for requests with the same token, for which one look-up is made. */
  readonly key: string
  /** Of the request. A look-up that waits is dropped when no request is left that asks for it. */
  readonly signal: AbortSignal
}

interface LookUp {
  readonly owner: string
  readonly run: () => Promise<unknown>
  readonly outcome: PromiseWithResolvers<unknown>
  requests: number
}

/**
 * Looks up tokens that this process does not know to be valid: a few at a time, in turns of the client addresses, and one
 * token once for all requests that present it meanwhile. New tokens of one address wait behind its invalid ones, and are found.
 */
export class TokenLookUps {
  readonly #waiting = new FairQueue<LookUp>(WAITING_PER_ADDRESS_MAX)
  readonly #byKey = new Map<string, LookUp>()
  #running = 0

  /**
   * The result of `read`, or of a look-up of the same token that has not ended.
   *
   * @throws Failure RATE_LIMITED when too many look-ups of the address wait, CANCELLED; what `read` throws
   */
  async find<T>({ address, key, signal }: UnknownToken, read: () => Promise<T>): Promise<T> {
    const lookUp = this.#byKey.get(key) ?? this.#start(address, key, read)
    lookUp.requests += 1
    const leave = () => {
      lookUp.requests -= 1
      if (lookUp.requests > 0 || !this.#waiting.remove(lookUp)) return
      this.#byKey.delete(key)
      lookUp.outcome.reject(new Failure('CANCELLED', 'the request has ended'))
    }
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
    this.#dispatch()
    return await (lookUp.outcome.promise as Promise<T>).finally(() => signal.removeEventListener('abort', leave))
  }

  #start(owner: string, key: string, read: () => Promise<unknown>): LookUp {
    if (this.#waiting.isFull(owner)) {
      const message = 'too many tokens of this address are being looked up; wait before the next request'
      throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: 1 })
    }
    const run = () => read().finally(() => this.#byKey.delete(key))
    const lookUp: LookUp = { owner, run, outcome: Promise.withResolvers(), requests: 0 }
    this.#byKey.set(key, lookUp)
    this.#waiting.push(lookUp)
    return lookUp
  }

  #dispatch(): void {
    while (this.#running < CONCURRENT_MAX) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#running += 1
      next
        .run()
        .then(next.outcome.resolve, next.outcome.reject)
        .finally(() => {
          this.#running -= 1
          this.#dispatch()
        })
    }
  }
}
