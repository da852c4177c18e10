import { type BackoffPolicy, backoffMs, type Clock } from '../base/index.ts'
import { isDatabaseUnavailable } from '../database/index.ts'
import { describeError, type Logger } from '../telemetry/index.ts'

/** Work that is done again and again. */
export interface PollLoopSpec {
  /** For the log. */
  readonly name: string
  /** Sleep between two rounds, unless the loop is woken. */
  readonly intervalMs: number
  /** One round; what it throws is logged and does not end the loop. @returns whether the next round should follow at once */
  runOnce(): Promise<boolean>
}

/** What a loop needs. */
export interface PollLoopDeps {
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  readonly logger: Logger
}

/** Share of the interval that is added at random, so that the loops of many workers do not run in step. */
const JITTER = 0.1
const ERROR_BACKOFF: BackoffPolicy = { baseMs: 100, factor: 2, maxMs: 2_000, jitterFloor: 0.5 }

/** Runs rounds until it is disposed, whatever goes wrong in one of them. */
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

  /** Begins; later calls do nothing. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Begins the next round now, or right after the one in flight. */
  wake(): void {
    this.#isWoken = true
    this.#sleepAbort.abort()
  }

  /** Ends the loop after the round in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#sleepAbort.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const sleepMs = await this.#round()
      if (!this.#isWoken && sleepMs > 0) await this.#sleep(sleepMs)
      this.#isWoken = false
    }
  }

  async #sleep(ms: number): Promise<void> {
    this.#sleepAbort = new AbortController()
    if (!this.#stop.signal.aborted) await this.#deps.clock.sleep(ms, this.#sleepAbort.signal)
  }

  async #round(): Promise<number> {
    const { random, logger } = this.#deps
    const { name, intervalMs } = this.#spec
    try {
      const isMore = await this.#spec.runOnce()
      this.#failures = 0
      return isMore ? 0 : intervalMs * (1 + JITTER * random())
    } catch (error) {
      this.#failures++
      if (!isDatabaseUnavailable(error)) logger.error({ loop: name, ...describeError(error) }, 'a round failed')
      else if (this.#failures === 1) logger.warn({ loop: name }, 'the database is unavailable, the loop waits')
      return backoffMs(ERROR_BACKOFF, this.#failures, random)
    }
  }
}
