import type { Clock } from '../../src/base/index.ts'

/** A clock that stands still until it is moved. */
export function movableClock(start = new Date('2026-01-01T00:00:00Z')): Clock & { move(ms: number): void } {
  let nowMs = start.getTime()
  return {
    now: () => new Date(nowMs),
    sleep: () => Promise.reject(new Error('nothing here sleeps')),
    move: (ms) => {
      nowMs += ms
    },
  }
}
