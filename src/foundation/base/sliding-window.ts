/**
 * The sliding-window counter: two fixed windows approximate one that slides. The requests of the window before count by the
 * share of it that the sliding window still covers.
 */
export interface WindowCounts {
  /** Requests in the fixed window under way. */
  readonly used: number
  /** Requests in the whole fixed window before. */
  readonly previous: number
  /** How much of the window under way has passed, 0 to 1. */
  readonly elapsed: number
}

/** Requests in the sliding window at this moment; a fraction, because those of the window before are weighted. */
export function slidingCount({ used, previous, elapsed }: WindowCounts): number {
  return used + previous * (1 - elapsed)
}

/**
 * Windows, or a share of one, until another request is within the limit if none is made meanwhile; 0: it is now.
 *
 * When the window under way alone is full, its own requests have to decay through the next one.
 */
export function windowsUntilAllowed(limit: number, { used, previous, elapsed }: WindowCounts): number {
  if (used + 1 > limit) return 1 - elapsed + decayShare(used, limit - 1)
  return Math.max(0, decayShare(previous, limit - used - 1) - elapsed)
}

/** The share of a window that has to pass until `count` requests of the window before it count as `countMax` or less. */
function decayShare(count: number, countMax: number): number {
  return count <= countMax ? 0 : 1 - countMax / count
}
