import { type BackoffPolicy, backoffMs, type Clock, type JsonObject } from '../base/index.ts'
import type { RecordsPage } from '../proxy/index.ts'
import type { RunOutcome } from '../runs/index.ts'
import { Semaphore } from './async-iterators.ts'
import { failureOutcome, type ListingError, type PageOutcome } from './page-outcome.ts'
import type { ListingRequest, PageSource } from './page-source.ts'

/** What fetching pages needs. */
interface FetchDeps {
  readonly source: PageSource
  readonly clock: Clock
  readonly random: () => number
  readonly signal: AbortSignal
  /** Shows that the run starts no call for the next `ms`. */
  readonly showWait: (ms: number) => void
}

/** Rate limit waits up to this are slept in the worker; longer ones postpone the run. */
const INLINE_WAIT_MAX_MS = 30_000
/** Rate limit waits for one page, after which the run is postponed. */
const INLINE_WAITS_MAX = 10
/** A rate limit wait is shown if it ends this much later than now and than the wait shown before: a write per second waited at most. */
const SHOWN_WAIT_MIN_MS = 1_000
/** Backoff for rate limits without a hint how long to wait. */
const DEFAULT_BACKOFF: BackoffPolicy = { baseMs: 1_000, factor: 2, maxMs: 60_000, jitterFloor: 0.5 }

/** Throttles the calls of one run: at most `concurrency` in parallel, none during a rate limit wait. */
export class PageFetcher {
  readonly #deps: FetchDeps
  readonly #semaphore: Semaphore
  #notBeforeMs = 0
  /** End of the wait that was shown last. */
  #shownUntilMs = 0

  constructor(deps: FetchDeps, concurrency: number) {
    this.#deps = deps
    this.#semaphore = new Semaphore(concurrency)
  }

  /** @param request evaluated with the first page, so that a template without a value is an error of the listing */
  open(request: () => ListingRequest): ListingReader {
    return new ListingReader(this, this.#deps, request)
  }

  /** Starts no call for the next `ms`. */
  pause(ms: number): void {
    const nowMs = this.#deps.clock.monotonicMs()
    this.#notBeforeMs = Math.max(this.#notBeforeMs, nowMs + ms)
    if (this.#notBeforeMs - Math.max(nowMs, this.#shownUntilMs) < SHOWN_WAIT_MIN_MS) return
    this.#shownUntilMs = this.#notBeforeMs
    this.#deps.showWait(this.#notBeforeMs - nowMs)
  }

  async throttle<Result>(call: () => Promise<Result>): Promise<Result> {
    const { clock, signal } = this.#deps
    return await this.#semaphore.run(async () => {
      const waitMs = this.#notBeforeMs - clock.monotonicMs()
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      signal.throwIfAborted()
      return await call()
    })
  }
}

/** Reads the pages of one listing in order, from any state. */
export class ListingReader {
  readonly #fetcher: PageFetcher
  readonly #deps: FetchDeps
  readonly #request: () => ListingRequest
  /** Yields the page of `#nextState` next; absent before the first page and after an error. */
  #pages: AsyncIterator<PageOutcome> | undefined
  #nextState: JsonObject | null = null

  constructor(fetcher: PageFetcher, deps: FetchDeps, request: () => ListingRequest) {
    this.#fetcher = fetcher
    this.#deps = deps
    this.#request = request
  }

  /** Fetches the page of the state, `null` for the first, after inline waits for short rate limits. */
  async fetch(state: JsonObject | null): Promise<RecordsPage | ListingError | RunOutcome> {
    for (let waits = 0; ; waits++) {
      const outcome = await this.#attempt(state)
      if (outcome.kind === 'page') return outcome
      await this.#close()
      if (this.#deps.signal.aborted) return { kind: 'stopped' }
      if (outcome.kind !== 'wait') return outcome
      const afterMs = outcome.afterMs ?? backoffMs(DEFAULT_BACKOFF, waits + 1, this.#deps.random)
      if (afterMs > INLINE_WAIT_MAX_MS || waits >= INLINE_WAITS_MAX) return { kind: 'rate_limited', afterMs }
      this.#fetcher.pause(afterMs)
    }
  }

  async #attempt(state: JsonObject | null): Promise<PageOutcome | RunOutcome> {
    try {
      return await this.#fetcher.throttle(() => this.#read(state))
    } catch (error) {
      return this.#deps.signal.aborted ? { kind: 'stopped' } : failureOutcome(error)
    }
  }

  async #read(state: JsonObject | null): Promise<PageOutcome> {
    if (this.#pages === undefined || state !== this.#nextState) {
      const pages = this.#deps.source.pages(this.#request(), state, this.#deps.signal)
      this.#pages = pages[Symbol.asyncIterator]()
    }
    const result = await this.#pages.next()
    if (result.done === true) throw new Error('a page source ended before its last page')
    if (result.value.kind === 'page') this.#nextState = result.value.state
    return result.value
  }

  async #close(): Promise<void> {
    const pages = this.#pages
    this.#pages = undefined
    await pages?.return?.()
  }
}
