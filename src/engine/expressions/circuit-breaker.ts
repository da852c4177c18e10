/** Failure threshold: kills after which the circuit opens for an expression. */
const FAILURES_MAX = 3

/** How long failures count, and how long the circuit stays open. A corrected expression has another hash. */
const COOLDOWN_MS = 60 * 60 * 1_000

/** Most expressions with failures; the oldest are evicted first. */
const ENTRIES_MAX = 10_000

/**
 * Circuit breaker per expression and owner: opens when its evaluations were killed several times.
 *
 * Per owner, because the same expression may be harmless on another owner's data, and malicious input of one owner must not
 * block the expression for others. In memory only.
 */
export class CircuitBreaker {
  readonly #entries = new Map<string, { strikes: number; untilMs: number }>()
  readonly #now: () => number

  /** @param now milliseconds of the epoch */
  constructor(now: () => number) {
    this.#now = now
  }

  /** No expression has a failure: there is no need to hash one. */
  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  /** When the expression may be evaluated again, in milliseconds of the epoch; `undefined` when it may now. */
  blockedUntilMs(owner: string, hash: string): number | undefined {
    const entry = this.#entries.get(breakerKey(owner, hash))
    if (!entry || entry.strikes < FAILURES_MAX) return undefined
    const restMs = entry.untilMs - this.#now()
    // A longer rest means that the clock was set back: no circuit stays open longer than the cooldown.
    return restMs > 0 && restMs <= COOLDOWN_MS ? entry.untilMs : undefined
  }

  /** Counts one kill. @returns true when it opened the circuit */
  recordFailure(owner: string, hash: string): boolean {
    const key = breakerKey(owner, hash)
    const known = this.#entries.get(key)
    const strikes = known && known.untilMs > this.#now() ? known.strikes + 1 : 1
    this.#entries.delete(key)
    this.#entries.set(key, { strikes, untilMs: this.#now() + COOLDOWN_MS })
    this.#evictOldest()
    return strikes === FAILURES_MAX
  }

  #evictOldest(): void {
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= ENTRIES_MAX) return
      this.#entries.delete(oldest)
    }
  }
}

function breakerKey(owner: string, hash: string): string {
  return `${owner}\n${hash}`
}
