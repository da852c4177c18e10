import type { CronExpression } from './cron-expression.ts'

/** How far back due ticks are caught up, one by one. */
export interface CatchUpPolicy {
  readonly windowMs: number
  /** Ticks of one trigger caught up in one pass at most. */
  readonly ticksMax: number
}

/** Ticks that are not caught up. */
interface MissedRange {
  readonly firstAt: Date
  readonly lastAt: Date
  /** Counted up to MISSED_COUNT_MAX; a lower bound beyond. */
  readonly count: number
}

/** What to do with the due ticks of a schedule. */
export interface CaughtUpTicks {
  /** Oldest first, never empty. */
  readonly ticks: readonly Date[]
  readonly missed: MissedRange | undefined
  /** The first tick after now. */
  readonly next: Date
}

/** The product's catch-up: an hour, one hundred ticks. */
export const CATCH_UP: CatchUpPolicy = { windowMs: 3_600_000, ticksMax: 100 }

const MISSED_COUNT_MAX = 1_000

/**
 * Catch-up: the ticks of a schedule from the one that is due until now, computed from ticks only, so that it does not matter
 * when or how late a pass runs.
 *
 * Ticks inside the window are caught up one by one, the newest `ticksMax` of them; the newest tick always is, however old.
 * All older ones are one range of missed ticks.
 *
 * @param dueAt a tick of the expression, not after `now`
 * @throws Error when the expression has no further tick
 */
export function catchUpTicks(cron: CronExpression, dueAt: Date, now: Date, catchUp: CatchUpPolicy): CaughtUpTicks {
  const following = getNextTick(cron, dueAt)
  if (following > now) return { ticks: [dueAt], missed: undefined, next: following }
  const ticks = newestTicks(cron, dueAt, now, catchUp)
  const [oldest = dueAt, newest = dueAt] = [ticks[0], ticks.at(-1)]
  return { ticks, missed: missedRangeBefore(cron, dueAt, oldest), next: getNextTick(cron, newest) }
}

function newestTicks(
  cron: CronExpression,
  dueAt: Date,
  now: Date,
  { windowMs, ticksMax }: CatchUpPolicy,
): readonly Date[] {
  const windowStart = now.getTime() - windowMs
  const ticks: Date[] = []
  let tick = cron.previous(new Date(now.getTime() + 1)) // a tick at this very moment counts
  while (tick !== undefined && tick >= dueAt && ticks.length < ticksMax) {
    if (ticks.length > 0 && tick.getTime() < windowStart) break
    ticks.push(tick)
    tick = cron.previous(tick)
  }
  return ticks.reverse()
}

function missedRangeBefore(cron: CronExpression, firstAt: Date, end: Date): MissedRange | undefined {
  const lastAt = cron.previous(end)
  if (firstAt >= end || lastAt === undefined) return undefined
  let count = 0
  for (let tick: Date | undefined = firstAt; tick !== undefined && tick < end && count < MISSED_COUNT_MAX; count++)
    tick = cron.next(tick)
  return { firstAt, lastAt, count }
}

function getNextTick(cron: CronExpression, after: Date): Date {
  const next = cron.next(after)
  if (next === undefined) throw new Error('the expression names no moment after its last tick')
  return next
}
