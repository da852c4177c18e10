import { CronExpressionParser } from 'cron-parser'
import { LRUCache } from 'lru-cache'

/** Nicknames of expressions, in lower case. The last four are extensions; the others are those of Vixie cron. */
export const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
  ['@minutely', '* * * * *'],
  ['@secondly', '* * * * * *'],
  ['@weekdays', '0 0 * * 1-5'],
  ['@weekends', '0 0 * * 0,6'],
])

/** Items such as `1#3` of one list; each is searched by itself, and the rarest take milliseconds. */
export const NTH_WEEKDAYS_MAX = 5

/** The values of each field and the names some of them have, by the number of fields that follow it. */
const FIELDS_FROM_LAST: readonly { readonly min: number; readonly max: number; readonly names?: readonly string[] }[] =
  [
    { min: 0, max: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
    {
      min: 1,
      max: 12,
      names: ['', 'jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
    },
    { min: 1, max: 31 },
    { min: 0, max: 23 },
    { min: 0, max: 59 },
    { min: 0, max: 59 },
  ]
const ITEM = /^(?:(?<every>\*)|(?<from>\w+)(?:-(?<to>\w+))?)(?:\/(?<step>\d+))?$/
const SUNDAY_AGAIN = 7

/**
 * One or several expressions that the parser accepts, whose ticks together are those of the text: nicknames are replaced, lists
 * name each value once (the parser rejects `1-5,3` and a step beside a step), and each `weekday#n` of a list gets an expression.
 *
 * Lists with other special items are left to the parser.
 *
 * @throws Error when a list has more than NTH_WEEKDAYS_MAX items with `#`
 */
function dedupeCronLists(text: string): readonly string[] {
  const trimmed = text.trim()
  const expression = NICKNAMES.get(trimmed.toLowerCase()) ?? trimmed
  if (!expression.includes(',')) return [expression]
  const fields = expression.split(/\s+/)
  const before = fields.slice(0, -1).map((field, place) => dedupeList(field, fields.length - 1 - place))
  return weekdayLists(fields.at(-1) ?? '').map((weekdays) => [...before, dedupeList(weekdays, 0)].join(' '))
}

/** Splits a list of weekdays so that each item with `#` is a list of its own. */
function weekdayLists(field: string): readonly string[] {
  const items = [...new Set(field.toUpperCase().split(','))]
  const nth = items.filter((item) => item.includes('#'))
  if (nth.length === 0) return [field]
  if (nth.length > NTH_WEEKDAYS_MAX) throw new Error(`more than ${NTH_WEEKDAYS_MAX} items with #`)
  const others = items.filter((item) => !item.includes('#'))
  return others.length === 0 ? nth : [...nth, others.join(',')]
}

function dedupeList(field: string, fromLast: number): string {
  const items = field.split(',')
  if (items.length === 1) return field
  const values = new Set<number>()
  for (const item of items) {
    const found = valuesOf(item, fromLast)
    if (found === undefined) return field
    for (const value of found) values.add(fromLast === 0 && value === SUNDAY_AGAIN ? 0 : value)
  }
  return [...values].sort((a, b) => a - b).join(',')
}

/** Undefined for items that are left to the parser. */
function valuesOf(item: string, fromLast: number): readonly number[] | undefined {
  const { every, from: fromText, to: toText, step: stepText } = ITEM.exec(item)?.groups ?? {}
  const { min = 0, max = 0 } = FIELDS_FROM_LAST[fromLast] ?? {}
  const from = every === undefined ? numberOf(fromText, fromLast) : min
  const isOpen = toText === undefined && (every !== undefined || stepText !== undefined)
  const to = isOpen ? max : toText === undefined ? from : numberOf(toText, fromLast)
  const step = Number(stepText ?? 1)
  if (from === undefined || to === undefined || to < from || to > max || step < 1) return undefined
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, count) => from + count * step)
}

function numberOf(text: string | undefined, fromLast: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text)
  const place = FIELDS_FROM_LAST[fromLast]?.names?.indexOf(text.toLowerCase()) ?? -1
  return place === -1 ? undefined : place
}

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

/** Caches the last computed tick, which is the next one of every moment between: triggers with the same text mostly come due at once. */
function memoizeLastTick(cron: CronExpression): CronExpression {
  let latest: { readonly fromMs: number; readonly tick: Date | undefined } | undefined
  return {
    previous: cron.previous,
    next(after) {
      const afterMs = after.getTime()
      const isKnown =
        latest !== undefined &&
        (afterMs === latest.fromMs ||
          (latest.tick !== undefined && afterMs > latest.fromMs && afterMs < latest.tick.getTime()))
      if (latest === undefined || !isKnown) latest = { fromMs: afterMs, tick: cron.next(after) }
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
  const parsed = dedupeCronLists(text).map(parseWithLibrary)
  const [only] = parsed
  if (only !== undefined && parsed.length === 1) return only
  // A weekday that is decades away costs milliseconds to find: it is not looked for again at each tick of the others.
  const parts = parsed.map(memoizeLastTick)
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

/** The library throws after 10 000 steps. */
function tickOrUndefined(take: () => { toDate(): Date }): Date | undefined {
  try {
    return take().toDate()
  } catch {
    return undefined
  }
}

/** An expression whose next tick is further away than this is a mistake, not a schedule. */
export const HORIZON_YEARS = 20

/**
 * The next `count` ticks after a moment; fewer when there are no more within HORIZON_YEARS of it.
 *
 * The horizon bounds the search: each of at most NTH_WEEKDAYS_MAX + 1 parsed parts passes over these years once, about a
 * millisecond a year at worst.
 */
export function nextTicks(expression: string, from: Date, count: number): readonly Date[] {
  const cron = parseCron(expression)
  const horizon = new Date(from)
  horizon.setUTCFullYear(from.getUTCFullYear() + HORIZON_YEARS)
  const ticks: Date[] = []
  for (let after = from; ticks.length < count; ) {
    const tick = cron.next(after)
    if (tick === undefined || tick > horizon) break
    ticks.push(tick)
    after = tick
  }
  return ticks
}
