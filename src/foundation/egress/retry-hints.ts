import { parseTime } from '../base/parse-time.ts'
import { toDouble } from '../json/json-number.ts'

/** Statuses of client errors that say nothing about the request itself (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4). */
const TRANSIENT_CLIENT_ERRORS: ReadonlySet<number> = new Set([408, 425, 429])

/** Whether the same request may succeed later, by the status of the response alone. */
export function isTransientStatus(status: number): boolean {
  return status >= 500 || TRANSIENT_CLIENT_ERRORS.has(status)
}

/** Upper bound of a wait in seconds; a longer one is a wrong unit or a wrong clock. */
const RETRY_AFTER_SECONDS_MAX = 24 * 3600

/** Numbers from here on are Unix times, in seconds or milliseconds. */
const EPOCH_SECONDS_MIN = 1e9
const EPOCH_MS_MIN = 1e12

const DECIMAL = /^[+-]?\d+(?:\.\d+)?$/

/**
 * Seconds to wait, from a `Retry-After` value (RFC 9110 §10.2.3) or the result of an expression about one.
 *
 * Seconds, also with decimals; an HTTP date, relative to `now`; or a Unix time, recognised by its magnitude, because the
 * header is relative at some providers and absolute at others. `undefined` for anything else, and for a wait that is not above 0,
 * such as a time in the past: that is no hint, and the caller waits as without one.
 *
 * @param now the time on the clock of the server that sent the value: `answeredAt`
 */
export function parseRetryAfter(value: unknown, now: Date): number | undefined {
  const number = typeof value === 'string' && DECIMAL.test(value.trim()) ? Number(value) : toDouble(value)
  if (typeof number === 'number') return bounded(secondsFromNumber(number, now))
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const date = parseTime(value)
  return Number.isNaN(date) ? undefined : bounded((date - now.getTime()) / 1000)
}

function secondsFromNumber(number: number, now: Date): number {
  if (number >= EPOCH_MS_MIN) return (number - now.getTime()) / 1000
  return number >= EPOCH_SECONDS_MIN ? number - now.getTime() / 1000 : number
}

function bounded(seconds: number): number | undefined {
  return seconds > 0 ? Math.min(RETRY_AFTER_SECONDS_MAX, seconds) : undefined
}

/** Largest difference between a server's clock and ours; beyond it the `Date` header is ignored. */
const CLOCK_SKEW_MS_MAX = 24 * 3_600_000

/** When a response was sent, on the clock of its server (`Date`, RFC 9110 §6.6.1); our own time where it says nothing credible. */
export function answeredAt({ date }: Readonly<Record<string, string>>, now: Date): Date {
  const ms = date === undefined ? Number.NaN : parseTime(date)
  return Math.abs(ms - now.getTime()) <= CLOCK_SKEW_MS_MAX ? new Date(ms) : now
}

/** Seconds that the `Retry-After` of a response asks to wait, its times read against the clock of its server. */
export function retryAfterSeconds(headers: Readonly<Record<string, string>>, now: Date): number | undefined {
  return parseRetryAfter(headers['retry-after'], answeredAt(headers, now))
}
