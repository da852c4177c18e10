import type { Clock } from '../../src/foundation/base/index.ts'

interface Sleeper {
  readonly ms: number
  readonly dueMs: number
  readonly wake: () => void
}

/** A clock that stands still until the test moves it, and ends the sleeps that are due then. */
export class ManualClock implements Clock {
  readonly #sleepers = new Set<Sleeper>()
  #nowMs: number
  /** With a fraction, as the machine's clock has. */
  #elapsedMs = 1_000.618_034
  #fellAsleep = Promise.withResolvers<void>()

  constructor(start: Date) {
    this.#nowMs = start.getTime()
  }

  readonly now = (): Date => new Date(this.#nowMs)
  readonly monotonicMs = (): number => this.#elapsedMs

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const sleeper = { ms, dueMs: this.#elapsedMs + ms, wake: resolve }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', () => this.#wake(sleeper), { once: true })
      this.#fellAsleep.resolve()
      this.#fellAsleep = Promise.withResolvers()
    })

  /** How many sleeps have not ended. */
  get sleeping(): number {
    return this.#sleepers.size
  }

  /** Moving it back sets the wall clock; the monotonic clock never goes back. */
  move(ms: number): void {
    this.#nowMs += ms
    this.#elapsedMs += Math.max(0, ms)
    for (const sleeper of this.#sleepers) if (sleeper.dueMs <= this.#elapsedMs) this.#wake(sleeper)
  }

  async untilSleeping(ms: number): Promise<void> {
    while (![...this.#sleepers].some((each) => each.ms === ms)) await this.#fellAsleep.promise
  }

  /** Waits until something sleeps for `ms`, then lets that time pass. */
  async pass(ms: number): Promise<void> {
    await this.untilSleeping(ms)
    this.move(ms)
  }

  #wake(sleeper: Sleeper): void {
    this.#sleepers.delete(sleeper)
    sleeper.wake()
  }
}

export function manualClock(start = new Date('2026-01-01T00:00:00Z')): ManualClock {
  return new ManualClock(start)
}
