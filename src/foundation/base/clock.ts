import { releaseSlotWhile } from './request-scope.ts'

/** Lengths of time in milliseconds. */
export const SECOND_MS = 1_000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Clock as a dependency: tests move it instead of sleeping. */
export interface Clock {
  now(): Date
  /** Milliseconds since an arbitrary moment; never goes back when the machine's time is corrected. For durations. */
  monotonicMs(): number
  /** Resolves after `ms`, or as soon as `signal` aborts; never rejects. The slot of the current request is free meanwhile. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/**
 * Waits for the work, but no longer than `ms` and not after the signal aborts; the work goes on.
 *
 * @returns its result, `undefined` when it was not done by then
 * @throws the error of the work
 */
export async function withTimeout<Result>(
  clock: Pick<Clock, 'sleep'>,
  work: Promise<Result>,
  ms: number,
  signal?: AbortSignal,
): Promise<Result | undefined> {
  const done = new AbortController()
  const end = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal])
  try {
    return await Promise.race([work, clock.sleep(ms, end).then(() => undefined)])
  } finally {
    done.abort()
  }
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) => releaseSlotWhile(() => sleep(ms, signal)),
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/**
 * The whole seconds that cover a duration, milliseconds. Fractions below a microsecond do not count: differences of monotonic
 * times have them, and 20 s would be 21.
 */
export function wholeSeconds(ms: number): number {
  return Math.ceil(Math.round(ms * 1_000) / 1_000_000)
}
