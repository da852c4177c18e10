import { assertNever, type BackoffPolicy, backoffMs, type Clock, type JsonObject } from '../base/index.ts'
import type { CompletedStatus, RunError, RunOutcome } from '../runs/index.ts'
import { Semaphore } from './async-iterators.ts'
import type { ListingRequest, PageSource, SourcePage } from './page-source.ts'
import { classifyListingError } from './run-outcome.ts'

/** An end of the run that is not its completion. */
export type EarlyEnd = Exclude<RunOutcome, { kind: CompletedStatus }>

/** What asking for a page came to. */
export type Fetched =
  | { readonly kind: 'page'; readonly page: SourcePage }
  /** This listing cannot go on, or a `transient` one not now; `error_handling` and the attempts left decide about the run. */
  | { readonly kind: 'problem'; readonly error: RunError; readonly isTransient: boolean }
  | { readonly kind: 'end'; readonly outcome: EarlyEnd }

/** What fetching needs. */
export interface FetchDeps {
  readonly source: PageSource
  readonly clock: Clock
  readonly random: () => number
  readonly signal: AbortSignal
}

/** Longer waits give the worker back and resume the run later. */
const INLINE_WAIT_MAX_MS = 30_000
/** Waits for one page after which its third party is taken to mean it. */
const INLINE_WAITS_MAX = 10
/** For a third party that says "too many requests" and not how long. */
const DEFAULT_BACKOFF: BackoffPolicy = { baseMs: 1_000, factor: 2, maxMs: 60_000, jitterFloor: 0.5 }

/** Every call of one run: at most `concurrency` at once, none while the third party asked to wait. */
export class PageFetcher {
  readonly #deps: FetchDeps
  readonly #gate: Semaphore
  #notBeforeMs = 0

  constructor(deps: FetchDeps, concurrency: number) {
    this.#deps = deps
    this.#gate = new Semaphore(concurrency)
  }

  /** @param request made when the first page is asked for, so that a template without a value is a problem of the listing */
  open(request: () => ListingRequest): ListingReader {
    return new ListingReader(this, this.#deps, request)
  }

  /** Nobody calls before `ms` have passed. */
  pause(ms: number): void {
    this.#notBeforeMs = Math.max(this.#notBeforeMs, this.#deps.clock.monotonicMs() + ms)
  }

  async throttle<Result>(call: () => Promise<Result>): Promise<Result> {
    const { clock, signal } = this.#deps
    return await this.#gate.run(async () => {
      const waitMs = this.#notBeforeMs - clock.monotonicMs()
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      signal.throwIfAborted()
      return await call()
    })
  }
}

/** The pages of one call, in order, from any state. */
export class ListingReader {
  readonly #fetcher: PageFetcher
  readonly #deps: FetchDeps
  readonly #request: () => ListingRequest
  /** Stands before the page of `#expected`; absent before the first page and after a failure. */
  #pages: AsyncIterator<SourcePage> | undefined
  #expected: JsonObject | null | undefined

  constructor(fetcher: PageFetcher, deps: FetchDeps, request: () => ListingRequest) {
    this.#fetcher = fetcher
    this.#deps = deps
    this.#request = request
  }

  /** Fetches the page of the state, sitting out short rate limits; `null` is the first page. */
  async fetch(state: JsonObject | null): Promise<Fetched> {
    for (let waits = 0; ; waits++) {
      try {
        return { kind: 'page', page: await this.#fetcher.throttle(() => this.#page(state)) }
      } catch (error) {
        this.#pages = undefined
        if (this.#deps.signal.aborted) return { kind: 'end', outcome: { kind: 'stopped' } }
        const answer = this.#answerTo(error, waits)
        if (answer !== undefined) return answer
      }
    }
  }

  /** What the error ends, or `undefined` when the same page is to be asked for again. */
  #answerTo(error: unknown, waits: number): Fetched | undefined {
    const verdict = classifyListingError(error)
    switch (verdict.kind) {
      case 'wait': {
        const afterMs = verdict.afterMs ?? backoffMs(DEFAULT_BACKOFF, waits + 1, this.#deps.random)
        if (afterMs > INLINE_WAIT_MAX_MS || waits >= INLINE_WAITS_MAX)
          return { kind: 'end', outcome: { kind: 'rate_limited', afterMs } }
        this.#fetcher.pause(afterMs)
        return undefined
      }
      case 'problem':
      case 'transient':
        return { kind: 'problem', error: verdict.error, isTransient: verdict.kind === 'transient' }
      case 'retry':
        return { kind: 'end', outcome: verdict }
      case 'fatal':
        return { kind: 'end', outcome: { kind: 'failed', error: verdict.error } }
      default:
        return assertNever(verdict)
    }
  }

  async #page(state: JsonObject | null): Promise<SourcePage> {
    if (this.#pages === undefined || state !== this.#expected) {
      const pages = this.#deps.source.pages(this.#request(), state ?? undefined, this.#deps.signal)
      this.#pages = pages[Symbol.asyncIterator]()
    }
    const result = await this.#pages.next()
    if (result.done === true) throw new Error('a page source ended before its last page')
    this.#expected = result.value.next ?? null
    return result.value
  }
}
