/** Kills after which an expression is set aside. */
const FAILURES_MAX = 3

/** How long strikes count, and how long the expression stays aside; a fixed expression is another one at once. */
const COOLDOWN_MS = 60 * 60 * 1_000

/** Expressions remembered; the oldest are forgotten first. */
const ENTRIES_MAX = 10_000

/**
 * Counts how often evaluations of an expression had to be killed.
 *
 * Counted per owner: the same text may be harmless on another owner's data, and nobody can set aside an expression for
 * others by feeding it hostile input. Kept in memory only.
 */
export class CircuitBreaker {
  readonly #entries = new Map<string, { strikes: number; untilMs: number }>()
  readonly #now: () => number

  /** @param now milliseconds of the epoch */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether no expression has a strike; spares hashing the expression. */
  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  /** When the expression may be evaluated again, in milliseconds of the epoch; `undefined` when it may now. */
  blockedUntilMs(owner: string, hash: string): number | undefined {
    const entry = this.#entries.get(breakerKey(owner, hash))
    if (!entry || entry.strikes < FAILURES_MAX) return undefined
    const restMs = entry.untilMs - this.#now()
    // More than was given means that the clock was set back: nothing is set aside for longer than it was meant to be.
    return restMs > 0 && restMs <= COOLDOWN_MS ? entry.untilMs : undefined
  }

  /** Counts one kill. @returns whether this one set the expression aside */
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
