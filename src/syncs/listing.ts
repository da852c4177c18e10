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
  /** The page was waited for: the source goes on with what it has of it, or has ended with the wait. */
  #hasWaited = false
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
      if (outcome.kind === 'wait' && !this.#deps.signal.aborted) {
        const afterMs = outcome.afterMs ?? backoffMs(DEFAULT_BACKOFF, waits + 1, this.#deps.random)
        if (afterMs <= INLINE_WAIT_MAX_MS && waits < INLINE_WAITS_MAX) {
          this.#fetcher.pause(afterMs)
          this.#hasWaited = true
          continue
        }
        await this.#close()
        return { kind: 'rate_limited', afterMs }
      }
      await this.#close()
      if (this.#deps.signal.aborted || outcome.kind === 'wait') return { kind: 'stopped' }
      return outcome
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
    if (this.#pages === undefined || state !== this.#nextState) this.#open(state)
    let result = await this.#next()
    if (result.done === true && this.#hasWaited) {
      this.#open(state)
      result = await this.#next()
    }
    if (result.done === true) throw new Error('a page source ended before its last page')
    this.#hasWaited = false
    if (result.value.kind === 'page') this.#nextState = result.value.state
    return result.value
  }

  #open(state: JsonObject | null): void {
    this.#pages = this.#deps.source.pages(this.#request(), state, this.#deps.signal)[Symbol.asyncIterator]()
    this.#nextState = state
  }

  async #next(): Promise<IteratorResult<PageOutcome, unknown>> {
    return (await this.#pages?.next()) ?? { done: true, value: undefined }
  }

  async #close(): Promise<void> {
    const pages = this.#pages
    this.#pages = undefined
    this.#hasWaited = false
    await pages?.return?.()
  }
}
