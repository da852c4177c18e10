import { DATABASE_REASONS, Failure, type FailureReason } from '../base/index.ts'
import { isRetryableStatus, type RecordsPage, type UpstreamErrorOutcome } from '../proxy/index.ts'
import type { RunError, RunOutcome } from '../runs/index.ts'

/**
 * The outcome of reading one page. It is decided where the response arrives; every layer up to the status of the run passes
 * it on unchanged.
 */
export type PageOutcome = RecordsPage | RateLimitWait | PageError

/** Rate limit: the page may be read after `afterMs`; `undefined` when the third party did not say how long. */
export interface RateLimitWait {
  readonly kind: 'wait'
  readonly afterMs: number | undefined
}

/** An error ends its listing, or the run: `retry` from the checkpoint, `failed` for good. */
export type PageError = ListingError | Extract<RunOutcome, { readonly kind: 'retry' | 'failed' }>

/** This listing ends, others can be read: `error_handling` decides about the run. */
export interface ListingError {
  readonly kind: 'listing_error'
  readonly error: RunError
  /** A later attempt may read the page. */
  readonly isTransient: boolean
}

/** Outcomes of failures by reason; a reason without an entry concerns the whole account or definition: `failed`. */
const OUTCOMES: Partial<Record<FailureReason, 'wait' | 'transient_listing_error' | 'listing_error' | 'retry'>> = {
  UPSTREAM_RATE_LIMITED: 'wait',
  RATE_LIMITED: 'wait',
  BUDGET_EXHAUSTED: 'wait',
  UPSTREAM_UNREACHABLE: 'transient_listing_error',
  UPSTREAM_INVALID_RESPONSE: 'transient_listing_error',
  DEADLINE_EXCEEDED: 'transient_listing_error',
  REQUEST_STALLED: 'retry',
  TOKEN_REQUEST_FAILED: 'retry',
  ...Object.fromEntries(DATABASE_REASONS.map((reason) => [reason, 'retry'])),
  SHUTTING_DOWN: 'retry',
  CANCELLED: 'retry',
  PLACEHOLDER_UNRESOLVED: 'listing_error',
  EXPRESSION_FAILED: 'listing_error',
  ACTION_FAILED: 'listing_error',
  PAGINATION_LOOP: 'listing_error',
  PAGINATION_ORIGIN: 'listing_error',
}

/** The credentials are not valid: every further call would fail the same way. */
const UNAUTHORIZED = 401

/**
 * The outcome of an error response of the third party.
 *
 * @param action of the definition; absent: the status decides
 * @param request as `GET /contacts/7`, secrets masked
 */
export function upstreamErrorOutcome(
  message: string,
  status: number,
  action: UpstreamErrorOutcome['action'] | undefined,
  request?: string,
): PageError {
  const error: RunError = {
    reason: 'UPSTREAM_ERROR',
    message: `the third party answered with status ${status}: ${message}`,
    ...(request === undefined ? {} : { request }),
  }
  if (action === 'needs_reauth' || status === UNAUTHORIZED) return { kind: 'failed', error }
  const isTransient = action === undefined ? isRetryableStatus(status) : action === 'retry'
  return { kind: 'listing_error', error, isTransient }
}

/**
 * The outcome of a request that was not made or not answered, by the reason of the failure.
 *
 * @throws the error itself when it is no `Failure` (a bug), and LEASE_LOST, after which nothing may be reported
 */
export function failureOutcome(failure: unknown): RateLimitWait | PageError {
  if (!(failure instanceof Failure) || failure.reason === 'LEASE_LOST') throw failure
  const error = toRunError(failure)
  switch (OUTCOMES[failure.reason]) {
    case 'wait':
      return {
        kind: 'wait',
        afterMs: failure.retryAfterSeconds === undefined ? undefined : failure.retryAfterSeconds * 1000,
      }
    case 'transient_listing_error':
      return { kind: 'listing_error', error, isTransient: true }
    case 'listing_error':
      return { kind: 'listing_error', error, isTransient: false }
    case 'retry':
      return { kind: 'retry', error }
    default:
      return { kind: 'failed', error }
  }
}

/** The outcome of a run that could not start because of the error. @throws like `failureOutcome` */
export function startFailureOutcome(error: unknown): RunOutcome {
  const outcome = failureOutcome(error)
  switch (outcome.kind) {
    case 'wait':
      return { kind: 'rate_limited', afterMs: outcome.afterMs ?? 0 }
    case 'listing_error':
      return { kind: outcome.isTransient ? 'retry' : 'failed', error: outcome.error }
    case 'retry':
    case 'failed':
      return outcome
  }
}

/** The error of a listing as that of its run: the message names the method. */
export function withNodeName(
  { resource, method }: { readonly resource: string; readonly method: string },
  error: RunError,
): RunError {
  return { ...error, message: `${resource}.${method}: ${error.message}` }
}

/** The error that a run shows of a failure. */
export function toRunError({ reason, publicMessage, metadata }: Failure): RunError {
  const { upstream_request: request } = metadata
  return { reason, message: publicMessage, ...(request === undefined ? {} : { request }) }
}
