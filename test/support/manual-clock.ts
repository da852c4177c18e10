import type { Clock } from '../../src/base/index.ts'

/** A clock that the test moves. Moving it back sets the wall clock; the monotonic clock never goes back. */
export function manualClock(start = new Date('2026-01-01T00:00:00Z')): Clock & { move(ms: number): void } {
  let nowMs = start.getTime()
  let elapsedMs = 0
  return {
    now: () => new Date(nowMs),
    monotonicMs: () => elapsedMs,
    sleep: () => Promise.reject(new Error('nothing here sleeps')),
    move: (ms) => {
      nowMs += ms
      elapsedMs += Math.max(0, ms)
    },
  }
}
