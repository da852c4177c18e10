import { backoffMs, type Clock, Failure, type FailureReason } from '../base/index.ts'
import type { MethodPlan } from '../definitions/index.ts'
import { parseRetryAfter } from '../egress/index.ts'
import type { CallContext } from './call-context.ts'
import { type DecodedResponse, isPermanentDecodeError } from './decode-response.ts'
import type { ProxyDependencies } from './dependencies.ts'
import type { AttemptResult, ClassifiedOutcome } from './outcome.ts'
import type { CallLimits } from './request.ts'

/** Failures of the way there and back, which another attempt may not meet. */
const RETRYABLE_REASONS: ReadonlySet<FailureReason> = new Set([
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'DEADLINE_EXCEEDED',
])

/** HTTP methods whose repetition changes nothing (RFC 9110 §9.2.2). */
const IDEMPOTENT_VERBS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'QUERY'])

type AttemptEnd<A extends ClassifiedOutcome> =
  | { readonly kind: 'answered'; readonly attempt: AttemptResult<A> }
  | { readonly kind: 'failed'; readonly failure: Failure }

/**
 * Stage 9: repeats what may be repeated: reading methods and idempotent verbs, on statuses and failures that pass, with
 * full jitter and the upstream's own hint as the floor. Rate limits are never waited for here: the caller decides. After a
 * request that took all its time another one begins only if it can take as long within the time for all.
 *
 * @throws Failure of the last attempt
 */
export async function withRetries<A extends ClassifiedOutcome>(
  { clock, random = Math.random }: Pick<ProxyDependencies, 'clock' | 'random'>,
  { request, target }: CallContext,
  attempt: () => Promise<AttemptResult<A>>,
): Promise<A> {
  const { elapsedMaxMs, baseMs, factor, waitMaxMs } = target.method.retry
  const most = attemptsMax(target.method, request.limits)
  const startedMs = clock.monotonicMs()
  for (let made = 1; ; made += 1) {
    const tried = await catchRetryable(attempt)
    if (made >= most || !isRetryable(tried) || isAborted(request.signal)) return unwrapAttempt(tried)
    const hintMs = tried.kind === 'answered' ? (tried.attempt.retryAfterSeconds ?? 0) * 1000 : 0
    const waitMs = Math.max(hintMs, backoffMs({ baseMs, factor, maxMs: waitMaxMs, jitterFloor: 0 }, made, random))
    const neededMs = isTimeout(tried) ? waitMs + (request.limits?.timeoutMs ?? target.method.timeoutMs) : waitMs
    if (clock.monotonicMs() - startedMs + neededMs > elapsedMaxMs) return unwrapAttempt(tried)
    await clock.sleep(waitMs, request.signal)
    if (isAborted(request.signal)) return unwrapAttempt(tried)
  }
}

/** Requests in all that a call may make of one: 1 where a repetition could take effect twice. */
export function attemptsMax({ isWrite, verb, retry }: MethodPlan, limits: CallLimits | undefined): number {
  const canRepeat = !isWrite || IDEMPOTENT_VERBS.has(verb) || retry.isUnsafeAllowed
  return canRepeat ? Math.min(retry.attemptsMax, limits?.attemptsMax ?? retry.attemptsMax) : 1
}

/** Seconds that an error response asks to wait. */
export function retryAfterHeaderSeconds(clock: Clock, { headers }: DecodedResponse): number | undefined {
  return parseRetryAfter(headers['retry-after'], clock.now())
}

async function catchRetryable<A extends ClassifiedOutcome>(
  attempt: () => Promise<AttemptResult<A>>,
): Promise<AttemptEnd<A>> {
  try {
    return { kind: 'answered', attempt: await attempt() }
  } catch (error) {
    if (error instanceof Failure && RETRYABLE_REASONS.has(error.reason) && !isPermanentDecodeError(error))
      return { kind: 'failed', failure: error }
    throw error
  }
}

function isRetryable(tried: AttemptEnd<ClassifiedOutcome>): boolean {
  if (tried.kind === 'failed') return true
  const { outcome: answer } = tried.attempt
  return answer.kind === 'upstream_error' && answer.action === 'retry'
}

function isTimeout(tried: AttemptEnd<ClassifiedOutcome>): boolean {
  return tried.kind === 'failed' && tried.failure.reason === 'DEADLINE_EXCEEDED'
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

function unwrapAttempt<A extends ClassifiedOutcome>(tried: AttemptEnd<A>): A {
  if (tried.kind === 'failed') throw tried.failure
  return tried.attempt.outcome
}
