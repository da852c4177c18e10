import { slidingCount, wholeSeconds } from '../../base/index.ts'

/** The state of one key after a request was counted. */
export interface RateLimitState {
  readonly isAllowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Until the current window ends and requests become available again. */
  readonly resetSeconds: number
}

/**
 * Sliding-window rate limiter: counts requests per key (an API token, a client address), in this process only; `rate-limits/`
 * counts calls of accounts across processes. Windows begin for all keys at the same time, so dropping a map drops idle
 * keys.
 */
export class RateLimiter {
  readonly #max: number
  readonly #windowMs: number
  #windowStartMs = Number.NEGATIVE_INFINITY
  #current = new Map<string, number>()
  #previous: ReadonlyMap<string, number> = new Map()

  /** @param max requests per window; 0 allows everything and counts nothing */
  constructor(max: number, windowMs: number) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /**
   * Counts one request of the key; `undefined` when there is no limit. A rejected request is not counted.
   *
   * @param nowMs monotonic time: with a clock that is set back every request would be rejected until it has caught up
   */
  take(key: string, nowMs: number): RateLimitState | undefined {
    if (this.#max === 0) return undefined
    this.#slideTo(nowMs)
    const elapsed = (nowMs - this.#windowStartMs) / this.#windowMs
    const used = this.#current.get(key) ?? 0
    const count = slidingCount({ used, previous: this.#previous.get(key) ?? 0, elapsed })
    const isAllowed = count + 1 <= this.#max
    if (isAllowed) this.#current.set(key, used + 1)
    const taken = count + (isAllowed ? 1 : 0)
    return {
      isAllowed,
      limit: this.#max,
      remaining: Math.max(0, Math.floor(this.#max - taken)),
      resetSeconds: Math.max(1, wholeSeconds(this.#windowMs * (1 - elapsed))),
    }
  }

  #slideTo(nowMs: number): void {
    const windows = Math.floor((nowMs - this.#windowStartMs) / this.#windowMs)
    if (windows < 1) return
    this.#previous = windows === 1 ? this.#current : new Map()
    this.#current = new Map()
    this.#windowStartMs = windows === 1 ? this.#windowStartMs + this.#windowMs : nowMs
  }
}
