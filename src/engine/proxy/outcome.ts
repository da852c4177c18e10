import type { Readable } from 'node:stream'
import type { Failure } from '../../foundation/base/index.ts'
import type { Json, JsonObject } from '../../foundation/json/index.ts'
import type { StepPlan } from '../definitions/plan.ts'
import type { DecodedResponse } from './decode-response.ts'

/** The outcome of a call that was answered. Anything else (wrong definition, blocked address, unreachable upstream) is thrown as a Failure. */
export type CallOutcome = SuccessOutcome | RateLimitedOutcome | UpstreamErrorOutcome

/** Success of a call. */
export interface SuccessOutcome {
  readonly kind: 'ok'
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
  /** The part of the body that `response_path` selects; of a list always the records. */
  readonly result: Json
  /** Present for lists. */
  readonly page: PageLinks | undefined
  readonly rateLimit: RateLimitInfo | undefined
  /** The entry of the last request in the request log; absent where nothing is logged. */
  readonly logId?: string | undefined
}

/** The outcome of a streamed call. */
export type StreamOutcome = StreamedResponse | RateLimitedOutcome | UpstreamErrorOutcome

/** Success of a streamed call: the head is there, the body arrives. */
export interface StreamedResponse {
  readonly kind: 'stream'
  readonly status: number
  /** Lower-case names, without hop-by-hop headers. `content-encoding` is kept. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * The bytes exactly as the upstream sent them. Read it to the end or destroy it; both release the connection. It fails with
   * a Failure: UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED.
   */
  readonly body: Readable
  readonly rateLimit: RateLimitInfo | undefined
  /** The entry of the request in the request log; absent where nothing is logged. */
  readonly logId?: string | undefined
}

/** Cursors of one page of a list. */
interface PageLinks {
  /** Opaque; `null` at the end. */
  readonly nextCursor: string | null
  /** Opaque; absent where the API has none. */
  readonly previousCursor: string | undefined
  /** Why the list ended; present at the end. */
  readonly stopReason: string | undefined
}

/** One page of a list, and where the list continues. Save both together. Passed on unchanged up to the sink of a sync. */
export interface RecordsPage<State extends JsonObject = JsonObject> {
  readonly kind: 'page'
  /** Page number from 1, continued across resumes. */
  readonly page: number
  /** A method that returns one record is a page of one. */
  readonly records: readonly Json[]
  /** Cursor to the next page as plain JSON, valid in every process; `null` on the last page. */
  readonly state: State | null
  /** Why the list ended: `empty_page`, `no_cursor`, `max_pages`, …; present on the last page. */
  readonly stopReason: string | undefined
  /** Total number of records as the upstream reports it; it may change from page to page. */
  readonly total?: number | undefined
  readonly rateLimit?: RateLimitInfo | undefined
  /** Of the response that it was read from, lower-case names; absent where a page does not come from one. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The entry of that request in the request log; absent where nothing is logged. */
  readonly logId?: string | undefined
}

/** Rate limit of the upstream, or of the definition's `budget` or `concurrency`. */
export interface RateLimitedOutcome {
  readonly kind: 'rate_limited'
  /** `budget`: nothing was sent; the status is 429 and there is no body. */
  readonly limitedBy: 'upstream' | 'budget'
  readonly status: number
  /** 0 or more; 60 where the upstream gave no hint. */
  readonly retryAfterSeconds: number
  readonly rateLimit: RateLimitInfo | undefined
  readonly body: Json
  /** The entry of the request in the request log; absent where nothing was sent or is logged. */
  readonly logId?: string | undefined
}

/** Forwarded as `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`; each as the upstream or the expression states it. */
export interface RateLimitInfo {
  readonly limit: string | undefined
  readonly remaining: string | undefined
  readonly reset: string | undefined
}

/** Error response of the upstream. */
export interface UpstreamErrorOutcome {
  readonly kind: 'upstream_error'
  /** Of the upstream, or of the error expression. */
  readonly status: number
  /** For people: from the error expression, else from the usual fields of the body. */
  readonly message: string
  readonly metadata: JsonObject
  /** Lower-case names; headers of the error expression replace those of the upstream. */
  readonly headers: Readonly<Record<string, string>>
  /** Headers of the error expression alone, which are forwarded to the caller. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** As the upstream sent it. */
  readonly body: Json
  /** `result` of the error expression; absent without one. */
  readonly result?: Json | undefined
  readonly rateLimit: RateLimitInfo | undefined
  /** From the definition, else by the status. */
  readonly action: ErrorAction
  /**
   * The status alone says that it is an error: the definition has an error expression, and that found none. Who called the
   * method itself gets the answer as the third party gave it; see `classifyResponse`.
   */
  readonly isPassedOn: boolean
  /** How long the third party asks to wait before the next attempt; absent where it does not say. */
  readonly retryHintSeconds?: number | undefined
  /** The request that it answers, as `GET /contacts/7`, secrets masked; absent where nothing was sent. */
  readonly request?: string | undefined
  /** The entry of that request in the request log; absent where nothing is logged. */
  readonly logId?: string | undefined
}

/**
 * `fail`: permanent. `retry`: transient, the retries of the definition are exhausted. `refresh_token`: once, then
 * `needs_reauth`. `needs_reauth`: the account must be connected again. `ignore`: an empty page that ends the list.
 * `stop`: ends the list without an error. `restart`: the cursor has expired; a run begins the list again, once per resource, and for
 * any other call it is `fail`. (`rate_limited` becomes an outcome of its own.)
 */
export type ErrorAction = 'fail' | 'retry' | 'refresh_token' | 'needs_reauth' | 'ignore' | 'stop' | 'restart'

/** A response after classification, before its result is extracted. */
export type ClassifiedResponse = ClassifiedSuccess | RateLimitedOutcome | UpstreamErrorOutcome

/** A response that is no error and no rate limit. */
export interface ClassifiedSuccess {
  readonly kind: 'success'
  readonly response: DecodedResponse
  readonly rateLimit: RateLimitInfo | undefined
  /** URL of the request, without authorization parameters. */
  readonly url: string
  /** The status says that the list has ended; the body holds no records. */
  readonly isPastEnd: boolean
}

/** A classified response, buffered or streamed. */
export type ClassifiedOutcome = ClassifiedResponse | StreamedResponse

/** The outcome of one attempt, with the wait that the upstream asks for before the next one. */
export interface AttemptResult<Outcome extends ClassifiedOutcome = ClassifiedResponse> {
  readonly outcome: Outcome
  readonly retryAfterSeconds?: number | undefined
}

/** The outcome of an action, with a report of its steps. */
export interface ActionRun {
  readonly outcome: ActionOutcome
  /** The steps that ran, in order, without those that `run_if` skipped. */
  readonly steps: readonly ActionStepResult[]
}

/**
 * The outcome of the last step that ran, or of the first that failed.
 *
 * The `result` of `ok` is that of the last step, `null` when none ran; status, headers and body are those of the upstream
 * only when the last step is a request.
 */
export type ActionOutcome = CallOutcome | { readonly kind: 'failed'; readonly failure: Failure }

/** The report of one step. Of request and response it holds the status alone. */
export interface ActionStepResult {
  readonly name: string
  readonly type: StepPlan['type']
  readonly ok: boolean
  /** Of the upstream, for requests that were answered. */
  readonly status: number | undefined
  readonly startedAt: Date
  readonly durationMs: number
  /** Present when it failed; credentials and results of earlier steps are masked in it. */
  readonly error: string | undefined
  /** The entry of its last request in the request log; absent where nothing was sent or is logged. */
  readonly logId?: string | undefined
}
