import { isRetryableStatus, type RecordsPage, type UpstreamErrorOutcome } from '../../engine/proxy/index.ts'
import {
  Failure,
  type FailureReason,
  isTransient,
  type TransientReason,
  validHintMs,
} from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { RunError, RunOutcome } from '../runs/run.ts'

/**
 * The outcome of reading one page. It is decided where the response arrives; every layer up to the status of the run passes
 * it on unchanged.
 */
export type PageOutcome = RecordsPage | RateLimitWait | PageError

/** Rate limit: the page may be read after `afterMs`; `undefined` when the third party did not say how long. */
export interface RateLimitWait {
  readonly kind: 'wait'
  readonly afterMs: number | undefined
  /** `service`: a limit of ours, for which nothing was sent; it counts as no request of the third party. Default: `upstream`. */
  readonly limitedBy?: 'upstream' | 'service'
  /** The entry of the request in the request log; absent where nothing was sent or is logged. */
  readonly logId?: string | undefined
  /** What is read of the page, as plain JSON, for who asks for it in another process; absent where a page is one request. */
  readonly progress?: JsonObject
}

/** An error ends its listing, or the run: `retry` from the checkpoint, `failed` for good. */
export type PageError = ListingError | Extract<RunOutcome, { readonly kind: 'retry' | 'failed' }>

/** This listing ends, others can be read: `error_handling` decides about the run. */
export interface ListingError {
  readonly kind: 'listing_error'
  readonly error: RunError
  /** The definition says that the list must begin again: its cursor has expired. */
  readonly isRestart?: boolean
  /** A later attempt may read the page. */
  readonly isTransient: boolean
  /** The least wait before that attempt, as the third party asks. */
  readonly afterMs?: number
}

/** What a failure means for a run: the last one ends it for good. */
type FailureEffect = 'wait' | 'transient_listing_error' | 'retry' | 'listing_error' | 'failed'
/** What passes never ends a run, nor a listing without another attempt. */
type TransientEffect = Exclude<FailureEffect, 'listing_error' | 'failed'>

/** What each reason means: a new reason, or one that becomes transient, compiles with an entry that fits alone. */
const EFFECTS: {
  readonly [Reason in FailureReason]: Reason extends TransientReason ? TransientEffect : FailureEffect
} = {
  // A limit.
  RATE_LIMITED: 'wait',
  UPSTREAM_RATE_LIMITED: 'wait',
  BUDGET_EXHAUSTED: 'wait',
  // This page was not read; another attempt may read it, unless the failure is permanent.
  UPSTREAM_UNREACHABLE: 'transient_listing_error',
  UPSTREAM_INVALID_RESPONSE: 'transient_listing_error',
  DEADLINE_EXCEEDED: 'transient_listing_error',
  // Says nothing about the listing, account or definition.
  TOKEN_REQUEST_FAILED: 'retry',
  REQUEST_STALLED: 'retry',
  CANCELLED: 'retry',
  SHUTTING_DOWN: 'retry',
  DATABASE_UNAVAILABLE: 'retry',
  DATABASE_OVERLOADED: 'retry',
  DATABASE_DISK_FULL: 'retry',
  DATABASE_READ_ONLY: 'retry',
  DATABASE_ACCESS_DENIED: 'retry',
  DATABASE_DAMAGED: 'retry',
  OBJECT_STORE_UNAVAILABLE: 'retry',
  INTERNAL: 'retry',
  // Concerns this listing alone.
  PLACEHOLDER_UNRESOLVED: 'listing_error',
  EXPRESSION_FAILED: 'listing_error',
  PAGINATION_LOOP: 'listing_error',
  PAGINATION_ORIGIN: 'listing_error',
  ACTION_FAILED: 'listing_error',
  // Concerns the whole account or definition, or does not occur here.
  INVALID_FIELD: 'failed',
  MALFORMED_BODY: 'failed',
  ENVIRONMENT_REQUIRED: 'failed',
  PAGE_TOKEN_INVALID: 'failed',
  ETAG_REQUIRED: 'failed',
  CONTEXT_KEY_RESERVED: 'failed',
  CREDENTIALS_INVALID: 'failed',
  SECRET_MASKED: 'failed',
  DESTINATION_CONFLICT: 'failed',
  DESTINATION_REQUIRED: 'failed',
  WEBHOOK_NOT_FOUND: 'failed',
  CRON_EXPRESSION_INVALID: 'failed',
  RESOURCES_INVALID: 'failed',
  ARGS_INVALID: 'failed',
  URL_NOT_ALLOWED: 'failed',
  REQUEST_TOO_LARGE: 'failed',
  UNSUPPORTED_MEDIA_TYPE: 'failed',
  COMPRESSION_UNSUPPORTED: 'failed',
  COMPRESSION_UNDECLARED: 'failed',
  REQUEST_CARDINALITY: 'failed',
  ROUTE_NOT_FOUND: 'failed',
  METHOD_NOT_ALLOWED: 'failed',
  TOKEN_MISSING: 'failed',
  TOKEN_INVALID: 'failed',
  TEAM_TOKEN_REQUIRED: 'failed',
  SCOPE_REQUIRED: 'failed',
  ACCESS_TOKENS_DISABLED: 'failed',
  OPERATOR_TEAM_REQUIRED: 'failed',
  ORIGIN_NOT_ALLOWED: 'failed',
  RESOURCE_NOT_FOUND: 'failed',
  ALREADY_INSTALLED: 'failed',
  NAME_TAKEN: 'failed',
  INTEGRATION_GRANT_REQUIRED: 'failed',
  INTEGRATION_DISABLED: 'failed',
  RESOURCE_IN_USE: 'failed',
  LIMIT_REACHED: 'failed',
  SANDBOX_ACCOUNT_READ_ONLY: 'failed',
  ACCOUNT_NOT_ACTIVE: 'failed',
  ACCOUNT_STATUS_CONFLICT: 'failed',
  CONTEXT_OBJECT_MISSING: 'failed',
  RUN_STATE_CONFLICT: 'failed',
  ANSWER_TOO_LARGE: 'failed',
  GROUP_FULL: 'failed',
  IDEMPOTENCY_KEY_REUSED: 'failed',
  ETAG_MISMATCH: 'failed',
  LEASE_LOST: 'failed',
  WEBHOOK_INACTIVE: 'failed',
  WEBHOOK_REFUSED: 'failed',
  DEFINITION_INVALID: 'failed',
  METHOD_NOT_DEFINED: 'failed',
  UNIFIED_NOT_MAPPED: 'failed',
  EXPRESSION_QUARANTINED: 'failed',
  EGRESS_BLOCKED: 'failed',
  UPSTREAM_ERROR: 'failed',
  SECRET_UNREADABLE: 'failed',
}

/** The credentials are not valid: every further call would fail the same way. */
const UNAUTHORIZED = 401

/**
 * The outcome of an error response of the third party.
 *
 * @param action of the definition; absent: the status decides
 * @param request as `GET /contacts/7`, secrets masked
 * @param logId the entry of the request in the request log
 * @param retryAfterSeconds as the third party asks
 */
export function upstreamErrorOutcome(
  message: string,
  status: number,
  action: UpstreamErrorOutcome['action'] | undefined,
  request?: string,
  logId?: string,
  retryAfterSeconds?: number,
): PageError {
  const error: RunError = {
    reason: 'UPSTREAM_ERROR',
    message: `the third party answered with status ${status}: ${message}`,
    ...(request === undefined ? {} : { request }),
    ...(logId === undefined ? {} : { logId }),
  }
  if (action === 'needs_reauth' || status === UNAUTHORIZED) return { kind: 'failed', error }
  const isTransient = action === undefined ? isRetryableStatus(status) : action === 'retry'
  const wait = retryAfterSeconds === undefined ? {} : { afterMs: retryAfterSeconds * 1_000 }
  const restart = action === 'restart' ? { isRestart: true } : {}
  return { kind: 'listing_error', error, isTransient, ...restart, ...(isTransient ? wait : {}) }
}

/**
 * The outcome of a request that was not made or not answered, by the reason of the failure.
 *
 * @throws the error itself when it is no `Failure` (a bug), and LEASE_LOST, after which nothing may be reported
 */
export function failureOutcome(failure: unknown): RateLimitWait | PageError {
  if (!(failure instanceof Failure) || failure.reason === 'LEASE_LOST') throw failure
  const error = toRunError(failure)
  switch (EFFECTS[failure.reason]) {
    case 'wait':
      return {
        kind: 'wait',
        afterMs: failure.retryAfterSeconds === undefined ? undefined : failure.retryAfterSeconds * 1000,
        limitedBy: failure.reason === 'UPSTREAM_RATE_LIMITED' ? 'upstream' : 'service',
      }
    case 'transient_listing_error':
      return { kind: 'listing_error', error, isTransient: isTransient(failure) }
    case 'listing_error':
      return { kind: 'listing_error', error, isTransient: false }
    case 'retry':
      return { kind: 'retry', error }
    case 'failed':
      return { kind: 'failed', error }
  }
}

/** The error of a page for which the third party has asked to wait too often. The run is tried again as after any transient error. */
export function waitedTooOften(waits: number, logId: string | undefined): ListingError {
  const message = `the third party asked to wait ${waits} times in a row`
  const error = { reason: 'UPSTREAM_RATE_LIMITED', message, ...(logId === undefined ? {} : { logId }) }
  return { kind: 'listing_error', error, isTransient: true }
}

/** Wait of a run that meets a limit before its first page, when the third party does not say how long. */
const START_WAIT_MS = 30_000

/** The outcome of a run that could not start because of the error. @throws like `failureOutcome` */
export function startFailureOutcome(error: unknown): RunOutcome {
  const outcome = failureOutcome(error)
  switch (outcome.kind) {
    case 'wait':
      return { kind: 'rate_limited', afterMs: validHintMs(outcome.afterMs) ?? START_WAIT_MS }
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
  const { upstream_request: request, log_id: logId } = metadata
  return {
    reason,
    message: publicMessage,
    ...(request === undefined ? {} : { request }),
    ...(logId === undefined ? {} : { logId }),
  }
}
