import type { RecordsPage } from '../../engine/proxy/index.ts'
import { type BackoffPolicy, type Clock, hintedWaitMs, type Random, validHintMs } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { RunOutcome } from '../runs/run.ts'
import { Semaphore } from './async-iterators.ts'
import {
  failureOutcome,
  type ListingError,
  type PageOutcome,
  type RateLimitWait,
  waitedTooOften,
} from './page-outcome.ts'
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
/** Backoff of rate limit waits in a row: the least wait from the second one on, and of the first one without a hint how long. */
const INLINE_BACKOFF: BackoffPolicy = { baseMs: 1_000, factor: 2, maxMs: 60_000, jitterFloor: 0.5 }
/** The same after `INLINE_WAITS_MAX` waits. */
const POSTPONED_BACKOFF: BackoffPolicy = { baseMs: 60_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 }
/** Waits in a row that the third party may ask for, also of a run that was postponed: the better part of a day. Then it is an error. */
const WAITS_IN_A_ROW_MAX = 100

/** A rate limit in the middle of a page: what is read of it, to be stored for another process. */
export interface ListingWait {
  readonly kind: 'waiting'
  readonly afterMs: number
  readonly progress: JsonObject
  /** The wait is one of the run; absent: the next `fetch` waits. */
  readonly end: Extract<RunOutcome, { readonly kind: 'rate_limited' }> | undefined
}

/** Throttles the calls of one run: at most `concurrency` in parallel, none during a rate limit wait. */
export class PageFetcher {
  readonly #deps: FetchDeps
  readonly #semaphore: Semaphore
  /** Waits in a row that the third party asked for, also before the run was postponed; a page ends them. */
  waits: number
  #notBeforeMs = 0
  /** End of the wait that was shown last. */
  #shownUntilMs = 0

  constructor(deps: FetchDeps, concurrency: number, waits = 0) {
    this.#deps = deps
    this.waits = waits
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

/**
 * The wait of a rate limit. The first one is as long as was asked for; from the second in a row on it is at least the backoff, so that
 * a third party that limits gets few requests whatever it says. A limit of this service says how long, and sends nothing.
 */
function waitMsAfter({ afterMs, limitedBy }: RateLimitWait, waits: number, random: Random): number {
  const hintMs = validHintMs(afterMs)
  if (hintMs !== undefined && (waits === 1 || limitedBy === 'service')) return hintMs
  return waits <= INLINE_WAITS_MAX
    ? hintedWaitMs(INLINE_BACKOFF, waits, hintMs, random)
    : hintedWaitMs(POSTPONED_BACKOFF, waits - INLINE_WAITS_MAX, hintMs, random)
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
  /** Waits in a row. */
  #waits: number

  constructor(fetcher: PageFetcher, deps: FetchDeps, request: () => ListingRequest) {
    this.#fetcher = fetcher
    this.#waits = fetcher.waits
    this.#deps = deps
    this.#request = request
  }

  /**
   * Fetches the page of the state, `null` for the first, after inline waits for short rate limits. Where something is read of the
   * page, each wait is returned: the caller stores its progress and calls again.
   *
   * @param progress of the page
   */
  async fetch(
    state: JsonObject | null,
    progress?: JsonObject,
  ): Promise<RecordsPage | ListingError | RunOutcome | ListingWait> {
    for (;;) {
      const outcome = await this.#attempt(state, progress)
      if (outcome.kind === 'page') {
        this.#waits = 0
        this.#fetcher.waits = 0
        return outcome
      }
      if (outcome.kind === 'wait' && !this.#deps.signal.aborted) {
        if (outcome.limitedBy !== 'service' && this.#waits >= WAITS_IN_A_ROW_MAX) {
          await this.#close()
          return waitedTooOften(this.#waits, outcome.logId)
        }
        const isInlineWait = this.#waits < INLINE_WAITS_MAX
        const afterMs = waitMsAfter(outcome, ++this.#waits, this.#deps.random)
        if (outcome.limitedBy !== 'service') this.#fetcher.waits = this.#waits
        const isInline = afterMs <= INLINE_WAIT_MAX_MS && isInlineWait
        if (isInline) {
          this.#fetcher.pause(afterMs)
          this.#hasWaited = true
        } else await this.#close()
        const end = isInline ? undefined : { kind: 'rate_limited' as const, afterMs }
        if (outcome.progress !== undefined) return { kind: 'waiting', afterMs, progress: outcome.progress, end }
        if (end !== undefined) return end
        continue
      }
      await this.#close()
      if (this.#deps.signal.aborted || outcome.kind === 'wait') return { kind: 'stopped' }
      return outcome
    }
  }

  async #attempt(state: JsonObject | null, progress: JsonObject | undefined): Promise<PageOutcome | RunOutcome> {
    try {
      return await this.#fetcher.throttle(() => this.#read(state, progress))
    } catch (error) {
      return this.#deps.signal.aborted ? { kind: 'stopped' } : failureOutcome(error)
    }
  }

  async #read(state: JsonObject | null, progress: JsonObject | undefined): Promise<PageOutcome> {
    if (this.#pages === undefined || state !== this.#nextState) this.#open(state, progress)
    let result = await this.#next()
    if (result.done === true && this.#hasWaited) {
      this.#open(state, progress)
      result = await this.#next()
    }
    if (result.done === true) throw new Error('a page source ended before its last page')
    this.#hasWaited = false
    if (result.value.kind === 'page') this.#nextState = result.value.state
    return result.value
  }

  #open(state: JsonObject | null, progress: JsonObject | undefined): void {
    const { source, signal } = this.#deps
    this.#pages = source.pages(this.#request(), state, signal, progress)[Symbol.asyncIterator]()
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
