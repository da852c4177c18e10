/** Exponential backoff with jitter. */
export interface BackoffPolicy {
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  /** Lowest share of the computed delay that is left after jitter: 0 is full jitter, 0.5 equal jitter. */
  readonly jitterFloor: number
}

/** A source of chance: a number in [0, 1). */
export type Random = () => number

/**
 * The delay before the next attempt in milliseconds: `min(max, base · factor^(attempt-1))`, scaled by jitter.
 *
 * @param attempt attempts made so far, from 1
 */
export function backoffMs(policy: BackoffPolicy, attempt: number, random: Random): number {
  const ceiling = Math.min(policy.maxMs, policy.baseMs * policy.factor ** (attempt - 1))
  return ceiling * (policy.jitterFloor + (1 - policy.jitterFloor) * random())
}

/**
 * The wait before the next attempt in milliseconds: what the other side asked for, and at least the backoff, which grows with every
 * attempt in a row. So whatever is asked for, the other side gets a bounded number of requests.
 *
 * @param attempt attempts made so far, from 1
 * @param hintMs what the other side asked for; one that is not above 0 and finite is none
 */
export function hintedWaitMs(
  policy: BackoffPolicy,
  attempt: number,
  hintMs: number | undefined,
  random: Random,
): number {
  return Math.max(validHintMs(hintMs) ?? 0, backoffMs(policy, attempt, random))
}

/** A requested wait if it is one: above 0, and finite. */
export function validHintMs(hintMs: number | undefined): number | undefined {
  return hintMs !== undefined && hintMs > 0 && Number.isFinite(hintMs) ? hintMs : undefined
}

/** Delays that are listed one by one; the last one is repeated. */
export interface RetrySchedule {
  readonly delaysMs: readonly number[]
  /** Largest share of a delay that jitter adds. */
  readonly jitter: number
}

/**
 * The delay before the next attempt in milliseconds.
 *
 * @param attempt attempts made so far, from 1
 */
export function retryDelayMs(policy: BackoffPolicy | RetrySchedule, attempt: number, random: Random): number {
  if (!('delaysMs' in policy)) return backoffMs(policy, attempt, random)
  const delayMs = policy.delaysMs[Math.min(attempt, policy.delaysMs.length) - 1] ?? 0
  return delayMs * (1 + policy.jitter * random())
}
