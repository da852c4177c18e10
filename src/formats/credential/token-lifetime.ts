import { type Json, toDouble } from '../../base/index.ts'

/** Larger numbers cannot be lifetimes: they are moments, in seconds or milliseconds since 1970. */
const EPOCH_SECONDS_MIN = 1e9
const EPOCH_MS_MIN = 1e12
const LIFETIME_MS_MAX = 10 * 365 * 24 * 3_600_000

/**
 * When a token ends, from what its answer says: seconds from now as number or text, a moment since 1970, or a date.
 *
 * `undefined` when it says nothing of the kind. A lifetime of zero or less is nothing too: servers send it for tokens that do
 * not end.
 */
export function parseExpiry(value: Json | undefined, now: Date): Date | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : toDouble(value)
  if (typeof number === 'number' && !Number.isNaN(number)) return boundExpiry(expiryMs(number, now), now)
  return typeof value === 'string' ? boundExpiry(Date.parse(value), now) : undefined
}

function expiryMs(number: number, now: Date): number {
  if (number >= EPOCH_MS_MIN) return number
  return number >= EPOCH_SECONDS_MIN ? number * 1_000 : now.getTime() + number * 1_000
}

function boundExpiry(momentMs: number, now: Date): Date | undefined {
  const lifetimeMs = momentMs - now.getTime()
  return lifetimeMs > 0 ? new Date(now.getTime() + Math.min(lifetimeMs, LIFETIME_MS_MAX)) : undefined
}
