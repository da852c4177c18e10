import { toDouble } from '../base/index.ts'

/** Assumed where an upstream limits without saying how long. */
export const RETRY_AFTER_DEFAULT_SECONDS = 60

/** Longest wait that is believed; more is a misread unit. */
const RETRY_AFTER_SECONDS_MAX = 24 * 3600

/** Larger numbers cannot be waits: they are moments, in seconds or milliseconds since 1970. */
const EPOCH_SECONDS_MIN = 1e9
const EPOCH_MS_MIN = 1e12

const DECIMAL = /^[+-]?\d+(?:\.\d+)?$/

/**
 * Seconds to wait, from a `Retry-After` value (RFC 9110 §10.2.3) or what an expression made of one.
 *
 * Seconds, also with decimals; an HTTP-date, measured against `now`; as a last resort an epoch, told by its magnitude,
 * because the same header name is relative at some providers and absolute at others. The past is 0, anything else is
 * `undefined`.
 */
export function parseRetryAfter(value: unknown, now: Date): number | undefined {
  const number = typeof value === 'string' && DECIMAL.test(value.trim()) ? Number(value) : toDouble(value)
  if (typeof number === 'number') return Number.isFinite(number) ? bounded(secondsFromNumber(number, now)) : undefined
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : bounded((date - now.getTime()) / 1000)
}

function secondsFromNumber(number: number, now: Date): number {
  if (number >= EPOCH_MS_MIN) return (number - now.getTime()) / 1000
  return number >= EPOCH_SECONDS_MIN ? number - now.getTime() / 1000 : number
}

function bounded(seconds: number): number {
  return Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(0, seconds))
}
