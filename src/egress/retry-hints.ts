import { parseTime, toDouble } from '../base/index.ts'

/** Statuses of client errors that say nothing about the request itself (RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4). */
const TRANSIENT_CLIENT_ERRORS: ReadonlySet<number> = new Set([408, 425, 429])

/** Whether the same request may succeed later, by the status of the response alone. */
export function isTransientStatus(status: number): boolean {
  return status >= 500 || TRANSIENT_CLIENT_ERRORS.has(status)
}

/** Upper bound of a wait; a larger number is a wrong unit. */
const RETRY_AFTER_SECONDS_MAX = 24 * 3600

/** Numbers from here on are Unix times, in seconds or milliseconds. */
const EPOCH_SECONDS_MIN = 1e9
const EPOCH_MS_MIN = 1e12

const DECIMAL = /^[+-]?\d+(?:\.\d+)?$/

/**
 * Seconds to wait, from a `Retry-After` value (RFC 9110 §10.2.3) or the result of an expression about one.
 *
 * Seconds, also with decimals; an HTTP date, relative to `now`; or a Unix time, recognised by its magnitude, because the
 * header is relative at some providers and absolute at others. A time in the past is 0, anything else `undefined`.
 */
export function parseRetryAfter(value: unknown, now: Date): number | undefined {
  const number = typeof value === 'string' && DECIMAL.test(value.trim()) ? Number(value) : toDouble(value)
  if (typeof number === 'number') return Number.isFinite(number) ? bounded(secondsFromNumber(number, now)) : undefined
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const date = parseTime(value)
  return Number.isNaN(date) ? undefined : bounded((date - now.getTime()) / 1000)
}

function secondsFromNumber(number: number, now: Date): number {
  if (number >= EPOCH_MS_MIN) return (number - now.getTime()) / 1000
  return number >= EPOCH_SECONDS_MIN ? number - now.getTime() / 1000 : number
}

function bounded(seconds: number): number {
  return Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(0, seconds))
}
