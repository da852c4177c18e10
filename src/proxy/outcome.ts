import type { Readable } from 'node:stream'
import type { Failure, Json, JsonObject } from '../base/index.ts'
import type { StepPlan } from '../definitions/index.ts'
import type { DecodedResponse } from './decode-response.ts'
import type { CallTarget, ProxyRequest } from './request.ts'

/** What a call came to. Refusals (wrong definition, blocked address, unreachable upstream) are thrown as Failures instead. */
export type CallOutcome = SuccessOutcome | RateLimitedOutcome | UpstreamErrorOutcome

/** The upstream did what was asked. */
export interface SuccessOutcome {
  readonly kind: 'ok'
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Json
  /** What `response_path` selects of the body; of a list always the records. */
  readonly result: Json
  /** Present for lists. */
  readonly page: PageLinks | undefined
  readonly rateLimit: RateLimitInfo | undefined
}

/** What a streamed call came to. */
export type StreamOutcome = StreamedResponse | RateLimitedOutcome | UpstreamErrorOutcome

/** The upstream did what was asked, and its answer is on the way. */
export interface StreamedResponse {
  readonly kind: 'stream'
  readonly status: number
  /** Lower-case names; without those that speak about the connection. `content-encoding` is kept. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * The bytes exactly as the upstream sent them. Read it to the end or destroy it; both release the connection. It fails with
   * a Failure: UPSTREAM_UNREACHABLE, UPSTREAM_INVALID_RESPONSE, DEADLINE_EXCEEDED, CANCELLED.
   */
  readonly body: Readable
  readonly rateLimit: RateLimitInfo | undefined
}

/** Where a list stands after this page. */
interface PageLinks {
  /** Opaque; `null` at the end. */
  readonly nextCursor: string | null
  /** Opaque; absent where the API does not tell it. */
  readonly previousCursor: string | undefined
  /** Why the list ended; present at the end. */
  readonly stopReason: string | undefined
}

/** One page of a list, and where the list continues. Save both together. Passed on unchanged up to the sink of a sync. */
export interface ListPage<State extends JsonObject = JsonObject> {
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
}

/** The upstream asks to wait, or the definition's budget is used up. */
export interface RateLimitedOutcome {
  readonly kind: 'rate_limited'
  /** `budget`: nothing was sent; the status is 429 and there is no body. */
  readonly limitedBy: 'upstream' | 'budget'
  readonly status: number
  /** 0 or more; 60 where the upstream gave no hint. */
  readonly retryAfterSeconds: number
  readonly rateLimit: RateLimitInfo | undefined
  readonly body: Json
}

/** Forwarded as `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`; each as the upstream or the expression gave it. */
export interface RateLimitInfo {
  readonly limit: string | undefined
  readonly remaining: string | undefined
  readonly reset: string | undefined
}

/** The upstream refused or failed. */
export interface UpstreamErrorOutcome {
  readonly kind: 'upstream_error'
  /** Of the upstream, or as the error expression normalised it. */
  readonly status: number
  /** For people: from the error expression, else from the usual places of the body. */
  readonly message: string
  readonly metadata: JsonObject
  /** Lower-case names; those of the error expression over those of the upstream. */
  readonly headers: Readonly<Record<string, string>>
  /** Those of the error expression alone, which are meant for the caller. */
  readonly ownHeaders: Readonly<Record<string, string>>
  /** As the upstream sent it. */
  readonly body: Json
  /** What the error expression tells the caller beside the message; absent where it gives nothing. */
  readonly result?: Json | undefined
  readonly rateLimit: RateLimitInfo | undefined
  /** What the definition, or the default table, wants done about it. */
  readonly action: ErrorAction
}

/**
 * `fail`: final. `retry`: was repeated as far as the rules allow, and may succeed later. `refresh_token`: once, then
 * `needs_reauth`. `needs_reauth`: the account must be connected again. `ignore`: an empty page that ends the list.
 * `stop`: ends the list cleanly. (`rate_limited` becomes an outcome of its own.)
 */
export type ErrorAction = 'fail' | 'retry' | 'refresh_token' | 'needs_reauth' | 'ignore' | 'stop'

/** What one request came to, before its result is taken out. */
export type ClassifiedResponse = ClassifiedSuccess | RateLimitedOutcome | UpstreamErrorOutcome

export interface ClassifiedSuccess {
  readonly kind: 'success'
  readonly response: DecodedResponse
  readonly rateLimit: RateLimitInfo | undefined
  /** What was requested, without authorization parameters. */
  readonly url: string
  /** The status says that the list is over; there is nothing to take out. */
  readonly isPastEnd: boolean
}

/** Either way of answering: read to the end, or while it arrives. */
export type ClassifiedOutcome = ClassifiedResponse | StreamedResponse

/** What an attempt came to, and how long the upstream asked to wait before another. */
export interface AttemptResult<A extends ClassifiedOutcome = ClassifiedResponse> {
  readonly outcome: A
  readonly retryAfterSeconds: number | undefined
}

/** An answer after which there is nothing to repeat. */
export function withoutRetryHint<A extends ClassifiedOutcome>(answer: A): AttemptResult<A> {
  return { outcome: answer, retryAfterSeconds: undefined }
}

/** What is run step by step. The proof of a credential is an action of one step, which is called `verification`. */
export type ActionTarget = Extract<CallTarget, { readonly kind: 'action' | 'verification' }>

/** A call in steps. Headers and page of the caller do not take part. */
export type ActionRequest = ProxyRequest & { readonly target: ActionTarget }

/** A caller's call of a named action. */
export type NamedActionRequest = ProxyRequest & { readonly target: Extract<CallTarget, { readonly kind: 'action' }> }

export function isActionRequest(request: ProxyRequest): request is NamedActionRequest {
  return request.target.kind === 'action'
}

/** What an action came to. */
export interface ActionRun {
  readonly outcome: ActionOutcome
  /** The steps that ran, in order; those that `run_if` skipped left no trace. */
  readonly steps: readonly ActionStepResult[]
}

/**
 * How it ended: as the last step that ran, or as the first that failed.
 *
 * The `result` of `ok` is that of the last step, `null` when none ran; status, headers and body are those of the upstream
 * only when the last step is a request.
 */
export type ActionOutcome = CallOutcome | { readonly kind: 'refused'; readonly failure: Failure }

/** One step as it is reported; says nothing of what was sent or received but the status. */
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
}
