import { Failure, type FailureReason, hintedWaitMs, isTransient } from '../../foundation/base/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import type { CallContext } from './call-context.ts'
import type { ProxyDependencies } from './dependencies.ts'
import type { AttemptResult, ClassifiedOutcome } from './outcome.ts'
import type { CallLimits } from './request.ts'

/** Transient failures of sending and receiving. */
const RETRYABLE_REASONS: ReadonlySet<FailureReason> = new Set([
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'DEADLINE_EXCEEDED',
])

/** Idempotent HTTP methods, by the registry of methods (RFC 9110 §16.1). */
const IDEMPOTENT_VERBS: ReadonlySet<string> = new Set([
  ...['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'QUERY'],
  ...['PROPFIND', 'PROPPATCH', 'MKCOL', 'MKCALENDAR', 'COPY', 'MOVE', 'UNLOCK', 'REPORT', 'SEARCH', 'ACL'],
])

type AttemptEnd<Outcome extends ClassifiedOutcome> =
  | { readonly kind: 'answered'; readonly attempt: AttemptResult<Outcome> }
  | { readonly kind: 'failed'; readonly failure: Failure }

/**
 * Retries of one call: reading methods and idempotent verbs, on transient statuses and failures, with full jitter and at least
 * the wait that the upstream asks for. Rate limits are not retried here: the caller decides. After a timeout another attempt
 * starts only if its timeout ends within `elapsedMaxMs`.
 *
 * @throws Failure of the last attempt
 */
export async function withRetries<Outcome extends ClassifiedOutcome>(
  { clock, random = Math.random }: Pick<ProxyDependencies, 'clock' | 'random'>,
  { request, target }: CallContext,
  attempt: () => Promise<AttemptResult<Outcome>>,
): Promise<Outcome> {
  const { elapsedMaxMs, baseMs, factor, waitMaxMs } = target.method.retry
  const attempts = attemptsMax(target.method, request.limits)
  const startedMs = clock.monotonicMs()
  for (let number = 1; ; number++) {
    const end = await catchRetryable(attempt)
    if (number >= attempts || !isRetryable(end) || isAborted(request.signal)) return unwrapAttempt(end)
    const hintMs = end.kind === 'answered' ? (end.attempt.retryAfterSeconds ?? 0) * 1000 : undefined
    const waitMs = hintedWaitMs({ baseMs, factor, maxMs: waitMaxMs, jitterFloor: 0 }, number, hintMs, random)
    const neededMs = isTimeout(end) ? waitMs + (request.limits?.timeoutMs ?? target.method.timeoutMs) : waitMs
    if (clock.monotonicMs() - startedMs + neededMs > elapsedMaxMs) return unwrapAttempt(end)
    await clock.sleep(waitMs, request.signal)
    if (isAborted(request.signal)) return unwrapAttempt(end)
  }
}

/** Attempts in all: 1 where a repetition could take effect twice. */
export function attemptsMax({ isWrite, verb, retry }: MethodPlan, limits: CallLimits | undefined): number {
  const canRepeat = !isWrite || IDEMPOTENT_VERBS.has(verb) || retry.isUnsafeAllowed
  return canRepeat ? Math.min(retry.attemptsMax, limits?.attemptsMax ?? retry.attemptsMax) : 1
}

async function catchRetryable<Outcome extends ClassifiedOutcome>(
  attempt: () => Promise<AttemptResult<Outcome>>,
): Promise<AttemptEnd<Outcome>> {
  try {
    return { kind: 'answered', attempt: await attempt() }
  } catch (error) {
    if (error instanceof Failure && RETRYABLE_REASONS.has(error.reason) && isTransient(error))
      return { kind: 'failed', failure: error }
    throw error
  }
}

function isRetryable(end: AttemptEnd<ClassifiedOutcome>): boolean {
  if (end.kind === 'failed') return true
  const { outcome } = end.attempt
  return outcome.kind === 'upstream_error' && outcome.action === 'retry'
}

function isTimeout(end: AttemptEnd<ClassifiedOutcome>): boolean {
  return end.kind === 'failed' && end.failure.reason === 'DEADLINE_EXCEEDED'
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

function unwrapAttempt<Outcome extends ClassifiedOutcome>(end: AttemptEnd<Outcome>): Outcome {
  if (end.kind === 'failed') throw end.failure
  return end.attempt.outcome
}
