import type { RateLimitWindow, RateLimitWindowState } from '../storage/index.ts'

/**
 * Milliseconds until a sliding window has room again if nobody takes anything meanwhile; at least 1.
 *
 * The requests of the window before count less and less as this one passes. When this one alone is full, its own requests
 * have to fade through the next.
 */
export function waitMs(
  { limit, windowMs }: Pick<RateLimitWindow, 'limit' | 'windowMs'>,
  { used, previous, elapsed, blockedMs }: RateLimitWindowState,
): number {
  const isFull = used + 1 > limit
  const untilRoom = isFull
    ? 1 - elapsed + decayTime(used, limit - 1)
    : Math.max(0, decayTime(previous, limit - used - 1) - elapsed)
  return Math.max(1, Math.ceil(Math.max(blockedMs, untilRoom * windowMs)))
}

/** The share of a window that has to pass until `count` requests before it count as `room` or less. */
function decayTime(count: number, room: number): number {
  return count <= room ? 0 : 1 - room / count
}
