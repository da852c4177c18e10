import { Failure, type FailureReason } from '../base/index.ts'
import type { RunError } from '../queue/index.ts'

/** What an error while fetching a page means for the run. */
export type Verdict =
  /** Ask again later; `afterMs` is what the third party asked for, if it did. */
  | { readonly kind: 'wait'; readonly afterMs: number | undefined }
  /** This listing cannot go on, others can: `error_handling` decides. */
  | { readonly kind: 'problem'; readonly error: RunError }
  /** Nothing works at the moment: the run goes on later from its checkpoint. */
  | { readonly kind: 'retry'; readonly error: RunError }
  /** Nothing will work until somebody changes something. */
  | { readonly kind: 'fatal'; readonly error: RunError }

/** Reasons that are about the whole account or definition rather than one listing. */
const KINDS: Partial<Record<FailureReason, Verdict['kind']>> = {
  UPSTREAM_RATE_LIMITED: 'wait',
  RATE_LIMITED: 'wait',
  UPSTREAM_UNREACHABLE: 'retry',
  DEADLINE_EXCEEDED: 'retry',
  DATABASE_UNAVAILABLE: 'retry',
  SHUTTING_DOWN: 'retry',
  CANCELLED: 'retry',
  UPSTREAM_INVALID_RESPONSE: 'problem',
  PLACEHOLDER_UNRESOLVED: 'problem',
  EXPRESSION_FAILED: 'problem',
  PAGINATION_LOOP: 'problem',
  PAGINATION_ORIGIN: 'problem',
}

/** The gateway of a third party that is down answers with these; a bug in one record's endpoint does not. */
const OUTAGE_STATUSES: ReadonlySet<string> = new Set(['408', '425', '502', '503', '504'])
/** The credentials are no longer good: every further call would fail the same way. */
const UNAUTHORIZED_STATUS = '401'

/**
 * Judges an error of a page source.
 *
 * @throws the error itself when it is not a refusal (a bug), and LEASE_LOST, after which nothing may be reported
 */
export function verdictOn(error: unknown): Verdict {
  if (!(error instanceof Failure) || error.reason === 'LEASE_LOST') throw error
  const kind =
    error.reason === 'UPSTREAM_ERROR' ? kindOfStatus(error.metadata.status) : (KINDS[error.reason] ?? 'fatal')
  if (kind === 'wait')
    return { kind, afterMs: error.retryAfterSeconds === undefined ? undefined : error.retryAfterSeconds * 1000 }
  return { kind, error: runErrorFrom(error) }
}

/** What a run shows of a refusal. */
export function runErrorFrom(failure: Failure): RunError {
  return { reason: failure.reason, message: failure.publicMessage }
}

function kindOfStatus(status: string | undefined): 'problem' | 'retry' | 'fatal' {
  if (status === UNAUTHORIZED_STATUS) return 'fatal'
  return OUTAGE_STATUSES.has(status ?? '') ? 'retry' : 'problem'
}
