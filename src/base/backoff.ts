/** How a delay grows with the attempts already made. */
export interface BackoffPolicy {
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  /** Lowest share of the computed delay that jitter may leave: 0 is full jitter, 0.5 the upper half. */
  readonly jitterFloor: number
}

/** A source of chance: a number in [0, 1). */
export type Random = () => number

/**
 * The wait before the next attempt: `min(max, base · factor^(attempt-1))`, scaled by a random share.
 *
 * @param attempt attempts made so far, from 1
 */
export function backoffMs(policy: BackoffPolicy, attempt: number, random: Random): number {
  const ceiling = Math.min(policy.maxMs, policy.baseMs * policy.factor ** (attempt - 1))
  return ceiling * (policy.jitterFloor + (1 - policy.jitterFloor) * random())
}
