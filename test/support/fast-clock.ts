import type { Clock } from '../../src/base/index.ts'

/** A clock whose sleeps take no time: they move it and are noted. */
export interface FastClock extends Clock {
  readonly sleptMs: readonly number[]
  advance(ms: number): void
}

/** Starts at the machine's time, because receivers' libraries compare signatures with it. */
export function fastClock(start = new Date()): FastClock {
  let nowMs = start.getTime()
  const sleptMs: number[] = []
  return {
    sleptMs,
    now: () => new Date(nowMs),
    monotonicMs: () => nowMs,
    advance(ms) {
      nowMs += ms
    },
    async sleep(ms) {
      sleptMs.push(ms)
      nowMs += ms
    },
  }
}
