import { slidingCount, wholeSeconds } from '../../../foundation/base/index.ts'

/** The state of one key after a request was counted. Limit and remainder are in units, of which most requests take one. */
export interface RateLimitState {
  readonly isAllowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Until the current window ends and requests become available again. */
  readonly resetSeconds: number
}

/**
 * Sliding-window rate limiter: counts units of requests per key (an API token, a client address), in this process only; `platform/limits/`
 * counts calls of accounts across processes. Windows begin for all keys at the same time, so dropping a map drops idle
 * keys.
 */
export class RateLimiter {
  readonly #max: number
  readonly #windowMs: number
  #windowStartMs = Number.NEGATIVE_INFINITY
  #current = new Map<string, number>()
  #previous: ReadonlyMap<string, number> = new Map()

  /** @param max units per window; 0 allows everything and counts nothing */
  constructor(max: number, windowMs: number) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /**
   * Counts a request of the key; `undefined` when there is no limit. A rejected request is not counted.
   *
   * @param cost units of the request; one that costs more than the limit takes a whole window
   * @param nowMs monotonic time: with a clock that is set back every request would be rejected until it has caught up
   */
  take(key: string, nowMs: number, cost = 1): RateLimitState | undefined {
    if (this.#max === 0) return undefined
    const units = Math.min(cost, this.#max)
    this.#slideTo(nowMs)
    const elapsed = this.#elapsed(nowMs)
    const count = this.#countOf(key, nowMs)
    const isAllowed = count + units <= this.#max
    if (isAllowed) this.#current.set(key, (this.#current.get(key) ?? 0) + units)
    const taken = count + (isAllowed ? units : 0)
    return {
      isAllowed,
      limit: this.#max,
      remaining: Math.max(0, Math.floor(this.#max - taken)),
      resetSeconds: Math.max(1, wholeSeconds(this.#windowMs * (1 - elapsed))),
    }
  }

  /** Counts units whose number was not known before they were used, also beyond the limit: what comes next waits for them. */
  charge(key: string, nowMs: number, cost: number): void {
    if (this.#max === 0) return
    this.#slideTo(nowMs)
    this.#current.set(key, (this.#current.get(key) ?? 0) + cost)
  }

  /** Whether what was counted afterwards has used up another whole window. */
  isOverdrawn(key: string, nowMs: number): boolean {
    if (this.#max === 0) return false
    this.#slideTo(nowMs)
    return this.#countOf(key, nowMs) > 2 * this.#max
  }

  #elapsed(nowMs: number): number {
    return (nowMs - this.#windowStartMs) / this.#windowMs
  }

  #countOf(key: string, nowMs: number): number {
    const [used, previous] = [this.#current.get(key) ?? 0, this.#previous.get(key) ?? 0]
    return slidingCount({ used, previous, elapsed: this.#elapsed(nowMs) })
  }

  #slideTo(nowMs: number): void {
    const windows = Math.floor((nowMs - this.#windowStartMs) / this.#windowMs)
    if (windows < 1) return
    this.#previous = windows === 1 ? this.#current : new Map()
    this.#current = new Map()
    this.#windowStartMs = windows === 1 ? this.#windowStartMs + this.#windowMs : nowMs
  }
}
