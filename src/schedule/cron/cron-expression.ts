import { CronExpressionParser } from 'cron-parser'
import { LRUCache } from 'lru-cache'
import { dedupeCronLists } from './plain-expressions.ts'

/** A parsed expression, in UTC. Its ticks are moments of whole seconds, the same wherever and whenever they are computed. */
export interface CronExpression {
  /** The first tick after the moment; undefined when none can be found, decades ahead. */
  next(after: Date): Date | undefined
  /** The last tick before the moment; undefined when none can be found. */
  previous(before: Date): Date | undefined
}

/** Parsing costs 10 to 20 µs, a next tick of a parsed expression 3 to 20: a million triggers share a few thousand texts. */
const EXPRESSIONS_CACHED_MAX = 5_000
const cache = new LRUCache<string, CronExpression>({ max: EXPRESSIONS_CACHED_MAX })

/**
 * Parses an expression that passed `checkCronExpression`, or takes it from the cache.
 *
 * @throws Error for text that is no expression; texts that were not checked may also mean something unintended
 */
export function cronExpression(text: string): CronExpression {
  const cached = cache.get(text)
  if (cached !== undefined) return cached
  const parsed = memoizeLastTick(parseCron(text))
  cache.set(text, parsed)
  return parsed
}

/** Remembers the latest next tick: triggers of one text mostly come due at one moment, all of them with the same next. */
function memoizeLastTick(cron: CronExpression): CronExpression {
  let latest: { readonly afterMs: number; readonly tick: Date | undefined } | undefined
  return {
    previous: cron.previous,
    next(after) {
      const afterMs = after.getTime()
      if (latest?.afterMs !== afterMs) latest = { afterMs, tick: cron.next(after) }
      return latest.tick
    },
  }
}

/**
 * Parses without looking at the cache or filling it, for text that is not stored yet.
 *
 * @throws Error for text that is no expression
 */
export function parseCron(text: string): CronExpression {
  const parts = dedupeCronLists(text).map(parseWithLibrary)
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only
  return {
    next: (after) => earliestTick(parts.flatMap((part) => part.next(after) ?? [])),
    previous: (before) =>
      earliestTick(
        parts.flatMap((part) => part.previous(before) ?? []),
        -1,
      ),
  }
}

function parseWithLibrary(text: string): CronExpression {
  const iterator = CronExpressionParser.parse(text, { tz: 'UTC' })
  return {
    next(after) {
      iterator.reset(after)
      return tickOrUndefined(() => iterator.next())
    },
    previous(before) {
      iterator.reset(before)
      return tickOrUndefined(() => iterator.prev())
    },
  }
}

/** The first of the moments; with `direction` -1 the last. */
function earliestTick(moments: readonly Date[], direction: 1 | -1 = 1): Date | undefined {
  return moments.toSorted((one, other) => (one.getTime() - other.getTime()) * direction)[0]
}

/** The library gives up with an exception after 10 000 steps. */
function tickOrUndefined(take: () => { toDate(): Date }): Date | undefined {
  try {
    return take().toDate()
  } catch {
    return undefined
  }
}
