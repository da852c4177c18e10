import { type BackoffPolicy, type Random, type RetrySchedule, retryDelayMs } from '../base/backoff.ts'
import { assertNever } from '../base/errors.ts'
import type { Outcome, WorkError } from './outcome.ts'

/** Lease times and retry limits of a queue. */
export interface QueuePolicy {
  readonly leaseMs: number
  /** A holder that was asked to stop and has not loses its lease after this long. */
  readonly stopGraceMs: number
  readonly attemptsMax: number
  readonly retry: BackoffPolicy | RetrySchedule
}

/** The product's policy: a crash is noticed within 35 s, five attempts span about two minutes. */
export const QUEUE_POLICY: QueuePolicy = {
  leaseMs: 30_000,
  stopGraceMs: 60_000,
  attemptsMax: 5,
  retry: { baseMs: 5_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 },
}

/** Interval at which holders renew their leases. */
export const HEARTBEAT_INTERVAL_MS = 10_000
/** Interval at which expired leases are searched. */
export const REAP_INTERVAL_MS = 5_000
/** Expired leases taken back in one transaction. */
export const REAP_BATCH = 500
/** Longest delay that another party may ask for. */
const WAIT_MS_MAX = 24 * 60 * 60 * 1000

/** How often an item was claimed. */
interface Attempts {
  /** The current attempt or the one that ended, from 1. A number is given twice only after an end that does not count. */
  readonly attempt: number
  /** Attempts up to this one do not count towards the limit: a later one made progress, or the item was retried by hand. */
  readonly attemptBase: number
}

/** The attempt after which the item fails, unless progress raises the base. */
export function attemptsMaxOf(
  { attemptsMax }: Pick<QueuePolicy, 'attemptsMax'>,
  { attemptBase }: Pick<Attempts, 'attemptBase'>,
): number {
  return attemptBase + attemptsMax
}

/** What an item becomes when a lease on it ends. */
export interface Resolution {
  readonly status: 'created' | 'rate_limited' | 'completed' | 'partially_completed' | 'failed' | 'stopped'
  readonly error: WorkError | null
  /** Attempts that count so far. */
  readonly attempt: number
  /** Delay until the item is available again; null: it has ended. */
  readonly delayMs: number | null
}

/** Retry policy: what becomes of an item whose attempt has ended with an outcome. */
export function resolveOutcome(policy: QueuePolicy, attempts: Attempts, outcome: Outcome, random: Random): Resolution {
  const { attempt } = attempts
  switch (outcome.kind) {
    case 'completed':
    case 'partially_completed':
      return { status: outcome.kind, error: null, attempt, delayMs: null }
    case 'stopped':
      return { status: 'stopped', error: null, attempt, delayMs: null }
    case 'failed':
      return { status: 'failed', error: outcome.error, attempt, delayMs: null }
    case 'retry': {
      const { error, afterMs = 0, isUncounted = false } = outcome
      if (isUncounted) return { status: 'created', error, attempt: attempt - 1, delayMs: clampWaitMs(afterMs) }
      if (attempt >= attemptsMaxOf(policy, attempts)) return { status: 'failed', error, attempt, delayMs: null }
      const ownMs = retryDelayMs(policy.retry, attempt - attempts.attemptBase, random)
      const delayMs = Math.max(ownMs, clampWaitMs(afterMs))
      return { status: 'created', error, attempt, delayMs }
    }
    case 'rate_limited': {
      const { afterMs, error = null } = outcome
      return { status: 'rate_limited', error, attempt: attempt - 1, delayMs: clampWaitMs(afterMs) }
    }
    case 'released':
      return { status: 'created', error: null, attempt: attempt - 1, delayMs: 0 }
    default:
      return assertNever(outcome)
  }
}

/** The error of an item whose holders all lost their lease. */
export const LEASE_EXPIRED: WorkError = {
  reason: 'lease_expired',
  message: 'the holder stopped answering: it crashed, was killed, or lost the database',
}

/** How an item ends. */
type FinalResult = Pick<Resolution, 'status' | 'error'>

const STOPPED_RESULT: FinalResult = { status: 'stopped', error: null }
const LEASE_LOST_RESULT: FinalResult = { status: 'failed', error: LEASE_EXPIRED }

/**
 * Retry policy: what becomes of an item whose lease has expired. It is available again immediately, since the lease was
 * delay enough; the attempt counts, or work that kills its worker would kill one worker after another.
 *
 * When the attempts are exhausted the item is leased once more (`QueuedRun.attemptsExhausted`), to report the failure to its
 * destination; the expiry of that lease fails it without a report.
 *
 * @param ending how the item was to end: its holder may have reported that to the destination, so that it ends in no other way
 */
export function resolveExpiry(
  policy: QueuePolicy,
  attempts: Attempts,
  isStopRequested: boolean,
  ending: FinalResult | undefined,
): Resolution {
  const { attempt } = attempts
  if (!isStopRequested && attempt <= attemptsMaxOf(policy, attempts))
    return { status: 'created', error: LEASE_EXPIRED, attempt, delayMs: 0 }
  const { status, error } = ending ?? (isStopRequested ? STOPPED_RESULT : LEASE_LOST_RESULT)
  return { status, error, attempt, delayMs: null }
}

function clampWaitMs(ms: number): number {
  return Math.min(WAIT_MS_MAX, Math.max(0, ms))
}
