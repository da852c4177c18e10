import { Failure, type FailureReason } from '../base/index.ts'
import { isTransientStatus } from '../proxy/index.ts'
import type { RunError, RunOutcome } from '../runs/index.ts'
import type { SyncNode } from './plan.ts'

/** What an error while fetching a page means for the run. */
export type ErrorClass =
  /** Ask again later; `afterMs` is what the third party asked for, if it did. */
  | { readonly kind: 'wait'; readonly afterMs: number | undefined }
  /** This listing cannot go on, others can: `error_handling` decides. */
  | { readonly kind: 'problem'; readonly error: RunError }
  /** This page may be read later; a listing of which it never can is a `problem`. */
  | { readonly kind: 'transient'; readonly error: RunError }
  /** Nothing works at the moment: the run goes on later from its checkpoint. */
  | { readonly kind: 'retry'; readonly error: RunError }
  /** Nothing will work until somebody changes something. */
  | { readonly kind: 'fatal'; readonly error: RunError }

/** What is not listed is about the whole account or definition: `fatal`. */
const KINDS: Partial<Record<FailureReason, ErrorClass['kind']>> = {
  UPSTREAM_RATE_LIMITED: 'wait',
  RATE_LIMITED: 'wait',
  BUDGET_EXHAUSTED: 'wait',
  UPSTREAM_UNREACHABLE: 'transient',
  UPSTREAM_INVALID_RESPONSE: 'transient',
  DEADLINE_EXCEEDED: 'transient',
  REQUEST_STALLED: 'retry',
  TOKEN_REQUEST_FAILED: 'retry',
  DATABASE_UNAVAILABLE: 'retry',
  SHUTTING_DOWN: 'retry',
  CANCELLED: 'retry',
  PLACEHOLDER_UNRESOLVED: 'problem',
  EXPRESSION_FAILED: 'problem',
  ACTION_FAILED: 'problem',
  PAGINATION_LOOP: 'problem',
  PAGINATION_ORIGIN: 'problem',
}

/** The credentials are no longer good: every further call would fail the same way. */
const UNAUTHORIZED_STATUS = '401'

/**
 * Judges an error of a page source.
 *
 * @throws the error itself when it is not a refusal (a bug), and LEASE_LOST, after which nothing may be reported
 */
export function classifyListingError(error: unknown): ErrorClass {
  if (!(error instanceof Failure) || error.reason === 'LEASE_LOST') throw error
  const kind = error.reason === 'UPSTREAM_ERROR' ? kindOfAnswer(error.metadata) : (KINDS[error.reason] ?? 'fatal')
  if (kind === 'wait')
    return { kind, afterMs: error.retryAfterSeconds === undefined ? undefined : error.retryAfterSeconds * 1000 }
  return { kind, error: toRunError(error) }
}

/** How a run ends that could not begin because of the error. @throws like `classifyListingError` */
export function outcomeOf(error: unknown): RunOutcome {
  const verdict = classifyListingError(error)
  switch (verdict.kind) {
    case 'retry':
      return verdict
    case 'transient':
      return { kind: 'retry', error: verdict.error }
    case 'wait':
      return { kind: 'rate_limited', afterMs: verdict.afterMs ?? 0 }
    case 'problem':
    case 'fatal':
      return { kind: 'failed', error: verdict.error }
  }
}

/** The error with the name of the method it came from, for whoever reads why a run ended. */
export function withNodeName({ resource, method }: SyncNode, { reason, message }: RunError): RunError {
  return { reason, message: `${resource}.${method}: ${message}` }
}

/** What a run shows of a refusal. */
export function toRunError(failure: Failure): RunError {
  return { reason: failure.reason, message: failure.publicMessage }
}

/** By what the definition wants done, where the source knows it, else by the status. */
function kindOfAnswer({ status = '', action }: Failure['metadata']): 'problem' | 'transient' | 'fatal' {
  if (action === 'needs_reauth' || status === UNAUTHORIZED_STATUS) return 'fatal'
  const isTransient = action === undefined ? isTransientStatus(Number(status)) : action === 'retry'
  return isTransient ? 'transient' : 'problem'
}
