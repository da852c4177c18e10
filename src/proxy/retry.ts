import { backoffMs, type Clock, Failure, type FailureReason } from '../base/index.ts'
import type { MethodPlan } from '../definition/index.ts'
import type { DecodedResponse } from './decode.ts'
import type { ProxyDependencies } from './dependencies.ts'
import type { Answer, Attempt, Job } from './perform.ts'
import { parseRetryAfter } from './retry-after.ts'

/** Failures of the way there and back, which another attempt may not meet. */
const RETRYABLE_REASONS: ReadonlySet<FailureReason> = new Set([
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'DEADLINE_EXCEEDED',
])

/** HTTP methods whose repetition changes nothing (RFC 9110 §9.2.2). */
const IDEMPOTENT_VERBS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'QUERY'])

type Tried =
  | { readonly kind: 'answered'; readonly attempt: Attempt }
  | { readonly kind: 'failed'; readonly failure: Failure }

/**
 * Repeats what may be repeated: reading methods and idempotent verbs, on statuses and failures that pass, with full jitter
 * and the upstream's own hint as the floor. Rate limits are never waited for here: the caller decides.
 *
 * @throws Failure of the last attempt
 */
export async function withRetries(deps: ProxyDependencies, job: Job, attempt: () => Promise<Attempt>): Promise<Answer> {
  const { request, target } = job
  const rules = target.method.retry
  const attemptsMax = canRepeat(target.method)
    ? Math.min(rules.attemptsMax, request.limits?.attemptsMax ?? rules.attemptsMax)
    : 1
  const startedMs = deps.clock.now().getTime()
  for (let made = 1; ; made += 1) {
    const tried = await tryOnce(attempt)
    const hintMs = tried.kind === 'answered' ? (tried.attempt.retryAfterSeconds ?? 0) * 1000 : 0
    const backoff = { baseMs: rules.baseMs, factor: rules.factor, maxMs: rules.waitMaxMs, jitterFloor: 0 }
    const waitMs = Math.max(hintMs, backoffMs(backoff, made, deps.random ?? Math.random))
    const isTooLate = deps.clock.now().getTime() - startedMs + waitMs > rules.elapsedMaxMs
    if (!isWorthRepeating(tried) || made >= attemptsMax || isTooLate || isAborted(request.signal)) return settle(tried)
    await deps.clock.sleep(waitMs, request.signal)
    if (isAborted(request.signal)) return settle(tried)
  }
}

/** Seconds that an error response asks to wait. */
export function retryAfterOf(clock: Clock, { headers }: DecodedResponse): number | undefined {
  return parseRetryAfter(headers['retry-after'], clock.now())
}

function canRepeat({ isWrite, verb, retry }: MethodPlan): boolean {
  return !isWrite || IDEMPOTENT_VERBS.has(verb) || retry.isUnsafeAllowed
}

async function tryOnce(attempt: () => Promise<Attempt>): Promise<Tried> {
  try {
    return { kind: 'answered', attempt: await attempt() }
  } catch (error) {
    if (error instanceof Failure && RETRYABLE_REASONS.has(error.reason)) return { kind: 'failed', failure: error }
    throw error
  }
}

function isWorthRepeating(tried: Tried): boolean {
  if (tried.kind === 'failed') return true
  const { answer } = tried.attempt
  return answer.kind === 'upstream_error' && answer.action === 'retry'
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

function settle(tried: Tried): Answer {
  if (tried.kind === 'failed') throw tried.failure
  return tried.attempt.answer
}
