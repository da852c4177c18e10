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
