import { assertNever, type BackoffPolicy, backoffMs } from '../base/index.ts'
import type { Outcome } from './queue.ts'
import type { RunError } from './run.ts'

/** How long leases last and how often work is tried. */
export interface QueuePolicy {
  readonly leaseMs: number
  /** A holder that was asked to stop and goes on loses its lease after so long. */
  readonly stopGraceMs: number
  readonly attemptsMax: number
  readonly retry: BackoffPolicy
}

/** The product's policy: a crash is noticed within 35 s, five attempts span about two minutes. */
export const QUEUE_POLICY: QueuePolicy = {
  leaseMs: 30_000,
  stopGraceMs: 60_000,
  attemptsMax: 5,
  retry: { baseMs: 5_000, factor: 2, maxMs: 15 * 60_000, jitterFloor: 0.5 },
}

/** How often holders renew what they hold. */
export const HEARTBEAT_INTERVAL_MS = 10_000
/** How often expired leases are looked for. */
export const REAP_INTERVAL_MS = 5_000
/** Expired leases taken back in one transaction. */
export const REAP_BATCH = 500
/** A wait somebody else asked for is honoured this far. */
const WAIT_MS_MAX = 24 * 60 * 60 * 1000

/** How often an item was taken up. */
interface Attempts {
  /** The attempt at hand or the one that ended, from 1. Never given twice but after an end that does not count. */
  readonly attempt: number
  /** Attempts up to this one are no part of the limit: a later one made progress, or the item was retried by hand. */
  readonly attemptBase: number
}

/** The attempt after which the item fails, unless progress moves it on. */
export function attemptsMaxOf(
  { attemptsMax }: Pick<QueuePolicy, 'attemptsMax'>,
  { attemptBase }: Pick<Attempts, 'attemptBase'>,
): number {
  return attemptBase + attemptsMax
}

/** What an item becomes when a lease on it ends. */
export interface Resolution {
  readonly status: 'created' | 'rate_limited' | 'completed' | 'partially_completed' | 'failed' | 'stopped'
  readonly error: RunError | null
  /** Attempts that count so far. */
  readonly attempt: number
  /** Back into the queue after so long; null: it is over. */
  readonly delayMs: number | null
}

/**
 * Turns how an attempt ended into what becomes of the item.
 *
 * @param random a number in [0, 1)
 */
export function resolveOutcome(
  policy: QueuePolicy,
  attempts: Attempts,
  outcome: Outcome,
  random: () => number,
): Resolution {
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
      if (attempt >= attemptsMaxOf(policy, attempts))
        return { status: 'failed', error: outcome.error, attempt, delayMs: null }
      const ownMs = backoffMs(policy.retry, attempt - attempts.attemptBase, random)
      const delayMs = Math.max(ownMs, clampWaitMs(outcome.afterMs ?? 0))
      return { status: 'created', error: outcome.error, attempt, delayMs }
    }
    case 'rate_limited': {
      const { afterMs, error = null } = outcome
      return { status: 'rate_limited', error, attempt: attempt - 1, delayMs: clampWaitMs(afterMs) }
    }
    case 'handed_back':
      return { status: 'created', error: null, attempt: attempt - 1, delayMs: 0 }
    default:
      return assertNever(outcome)
  }
}

/** Why an item whose holders are lost one after another fails. */
export const LEASE_EXPIRED: RunError = {
  reason: 'lease_expired',
  message: 'the holder stopped answering: it crashed, was killed, or lost the database',
}

/** How an item ends. */
type FinalResult = Pick<Resolution, 'status' | 'error'>

const STOPPED_RESULT: FinalResult = { status: 'stopped', error: null }
const LEASE_LOST_RESULT: FinalResult = { status: 'failed', error: LEASE_EXPIRED }

/**
 * What becomes of an item whose holder is gone. The expired lease was delay enough, so it is available at once; the attempt
 * counts, or work that kills its worker would kill one after another. After the last attempt one more holder gets it, who
 * is not to try again but to tell its destination: its attempt is above the limit.
 *
 * @param ending how the item was to end: its holder may have told its destination, so that it ends in no other way
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
