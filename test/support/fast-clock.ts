import type { Clock } from '../../src/foundation/base/index.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'

/** A clock whose sleeps take no time: they move it and are noted. */
export interface FastClock extends Clock, Pick<ManualClock, 'pass'> {
  /** To the microsecond: differences of times with a fraction are not exact. */
  readonly sleptMs: readonly number[]
  advance(ms: number): void
}

/**
 * Starts at the machine's time, because receivers' libraries compare signatures with it.
 *
 * @param heldFromMs sleeps of at least this length last until the clock comes to their end. Absent: none
 */
export function fastClock(start = new Date(), heldFromMs = Number.POSITIVE_INFINITY): FastClock {
  const clock = manualClock(start)
  const sleptMs: number[] = []
  return {
    sleptMs,
    now: clock.now,
    monotonicMs: clock.monotonicMs,
    advance: (ms) => clock.move(ms),
    pass: (ms) => clock.pass(ms),
    async sleep(ms, signal) {
      if (ms >= heldFromMs) return await clock.sleep(ms, signal)
      sleptMs.push(toMicrosecond(ms))
      clock.move(ms)
    },
  }
}

/** Milliseconds without the error of floating point. */
export function toMicrosecond(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}
