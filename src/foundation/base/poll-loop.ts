import { type BackoffPolicy, backoffMs, type Random } from './backoff.ts'
import type { Clock } from './clock.ts'

/** Work that is done again and again. */
export interface PollLoopSpec {
  /** For the log. */
  readonly name: string
  /** Pause after a round that found nothing more to do, unless the loop is woken. */
  readonly intervalMs: number
  /** One round. @returns `true`: the next one follows at once; `false`: after `intervalMs` and jitter; a number: after so many ms */
  runOnce(): Promise<boolean | number>
}

/** What every loop of a process shares. */
export interface PollLoopDeps {
  readonly clock: Pick<Clock, 'sleep'>
  readonly random: Random
  /**
   * Called with the error of each failed round; logs it.
   *
   * @param failures failed rounds in a row, from 1
   * @returns the least pause before the next round, ms; absent: the loop's own backoff alone
   * @throws what ends the loop
   */
  readonly onError: (error: unknown, loop: string, failures: number) => number | undefined
}

/** Share of the interval that is added at random, so that the loops of many processes do not run in step. */
const JITTER = 0.1
/** Pause after a failed round. */
const ERROR_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 2, maxMs: 1_000, jitterFloor: 0.5 }

/** Poll loop: runs rounds until it is disposed. A failed round is followed by a backoff, not by the end. */
export class PollLoop {
  readonly #deps: PollLoopDeps
  readonly #spec: PollLoopSpec
  readonly #stop = new AbortController()
  #sleepAbort = new AbortController()
  #isWoken = false
  #running: Promise<void> | undefined
  #failures = 0

  constructor(deps: PollLoopDeps, spec: PollLoopSpec) {
    this.#deps = deps
    this.#spec = spec
  }

  /** Begins; later calls change nothing. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Resolves after the last round of a started loop; rejects with what `onError` threw. */
  get ended(): Promise<void> | undefined {
    return this.#running
  }

  /** Begins the next round now, or right after the one in flight. */
  wake(): void {
    if (this.#isWoken) return
    this.#isWoken = true
    this.#sleepAbort.abort()
  }

  /** Ends the loop after the round in flight. An error that has ended it before is for `ended` alone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#sleepAbort.abort()
    await this.#running?.catch(() => {})
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const pauseMs = await this.#round()
      if (!this.#isWoken && pauseMs > 0) await this.#sleep(pauseMs)
      this.#isWoken = false
    }
  }

  async #sleep(ms: number): Promise<void> {
    this.#sleepAbort = new AbortController()
    if (!this.#stop.signal.aborted) await this.#deps.clock.sleep(ms, this.#sleepAbort.signal)
  }

  /** @returns the pause before the next round, ms */
  async #round(): Promise<number> {
    const { random, onError } = this.#deps
    const { name } = this.#spec
    try {
      const next = await this.#spec.runOnce()
      this.#failures = 0
      if (typeof next === 'number') return next
      return next ? 0 : this.#spec.intervalMs * (1 + JITTER * random())
    } catch (error) {
      this.#failures++
      const pauseMs = onError(error, name, this.#failures)
      return Math.max(pauseMs ?? 0, backoffMs(ERROR_BACKOFF, this.#failures, random))
    }
  }
}
