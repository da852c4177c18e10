import { suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import { HORIZON_YEARS, NICKNAMES, NTH_WEEKDAYS_MAX, nextTicks, parseCron } from './cron-expression.ts'

/** What an expression is checked against. */
export interface CronRules {
  /** Smallest gap between two ticks that is allowed. */
  readonly minTickGapSeconds: number
  /** The moment from which ticks are computed. */
  readonly from: Date
  /** The field's path in the request. */
  readonly field: string
}

const TEXT_LENGTH_MAX = 255
/** Ticks over which the smallest gap is measured. */
const GAP_TICKS = 64

/** The parts of an expression of six fields, in order, and what each takes. */
const PARTS = [
  { name: 'second', takes: '0-59' },
  { name: 'minute', takes: '0-59' },
  { name: 'hour', takes: '0-23' },
  { name: 'day of month', takes: '1-31 or L' },
  { name: 'month', takes: '1-12 or JAN-DEC' },
  { name: 'day of week', takes: `0-7 or SUN-SAT, 5L for the last, up to ${NTH_WEEKDAYS_MAX} of 1#2 for the second` },
] as const
const DAY_OF_MONTH = 3

/** H alone or beside a number: Jenkins' hash, for which the parser picks another value at every parse. */
const HASHED = /(?<![a-z])h+(?![a-z])/i
/** The only name with an H; in any other word the parser reads it as a hash. */
const NAME_WITH_H = /thu/gi
const NEAREST_WEEKDAY = /w/i
const BEFORE_LAST = /^l-\d/i

/**
 * Validates a cron expression: five fields, or six with seconds first, or a nickname; in UTC. At most one violation. The fields
 * are counted before anything is parsed, since the parser reads missing ones as "every".
 */
export function checkCronExpression(text: string, rules: CronRules): Violation[] {
  const finding = checkShape(text) ?? checkSchedule(text, rules)
  return finding === undefined ? [] : [{ field: rules.field, ...finding }]
}

type CronFinding = Pick<Violation, 'rule' | 'description'>

function checkShape(text: string): CronFinding | undefined {
  if (text.length > TEXT_LENGTH_MAX)
    return { rule: 'cron.length', description: `must not be longer than ${TEXT_LENGTH_MAX} characters` }
  const trimmed = text.trim()
  if (trimmed.startsWith('@')) return checkNickname(trimmed)
  const fields = trimmed === '' ? [] : trimmed.split(/\s+/)
  if (fields.length < 5 || fields.length > 6) return fieldCountFinding(fields.length)
  const named = fields.map((value, index) => ({ value, part: index + PARTS.length - fields.length }))
  return named.map(({ value, part }) => checkField(value, part)).find((finding) => finding !== undefined)
}

function checkNickname(text: string): CronFinding | undefined {
  if (NICKNAMES.has(text.toLowerCase())) return undefined
  if (text.toLowerCase() === '@reboot')
    return { rule: 'cron.reboot', description: 'must name moments: @reboot is none of a service that does not stop' }
  return {
    rule: 'cron.nickname',
    description: `has no nickname ${text}${suggestOneOf(text, NICKNAMES.keys())}`,
  }
}

function fieldCountFinding(count: number): CronFinding {
  const year = count === 7 ? '; a year field is not supported' : ''
  const has = count === 1 ? 'has 1 field' : `has ${count} fields`
  const description = `${has}, but needs 5 (minute, hour, day of month, month, day of week) or 6 with seconds first${year}`
  return { rule: 'cron.field_count', description }
}

function checkField(value: string, part: number): CronFinding | undefined {
  const { name, takes } = PARTS[part] ?? PARTS[0]
  const where = `has ${value} in its ${name} field`
  if (HASHED.test(value))
    return {
      rule: 'cron.hash',
      description: `${where}: H would mean another moment at every evaluation; write a number`,
    }
  if (part === DAY_OF_MONTH && NEAREST_WEEKDAY.test(value))
    return { rule: 'cron.nearest_weekday', description: `${where}: W (nearest weekday) is not supported` }
  if (part === DAY_OF_MONTH && BEFORE_LAST.test(value))
    return { rule: 'cron.before_last', description: `${where}: days before the last of the month are not supported` }
  const isWord = /h/i.test(value.replace(NAME_WITH_H, ''))
  if (isWord || !parses(PARTS.map((_, index) => (index === part ? value : '*')).join(' ')))
    return { rule: 'cron.value', description: `${where}, which takes ${takes}, and ranges, steps and lists of them` }
  return undefined
}

function checkSchedule(text: string, { from, minTickGapSeconds }: CronRules): CronFinding | undefined {
  const description = `names no moment within the next ${HORIZON_YEARS} years: ${daysOf(text)}`
  const never = { rule: 'cron.never', description }
  // Every field is fine by itself, so what does not parse is a day that no month has, such as 30 February.
  if (!parses(text)) return never
  const ticks = nextTicks(text, from, minTickGapSeconds > 1 ? GAP_TICKS : 1)
  if (ticks.length === 0) return never
  const gapSeconds = smallestGapSeconds(ticks)
  if (gapSeconds >= minTickGapSeconds) return undefined
  return {
    rule: 'cron.gap',
    description: `has ticks ${gapSeconds} s apart; the smallest gap allowed here is ${minTickGapSeconds} s`,
  }
}

/** The three fields that together choose days, as a message names them. */
function daysOf(text: string): string {
  const [day, month, weekday] = text.trim().split(/\s+/).slice(-3)
  return `day of month ${day}, month ${month}, day of week ${weekday}`
}

function parses(text: string): boolean {
  try {
    parseCron(text)
    return true
  } catch {
    return false
  }
}

function smallestGapSeconds(ticks: readonly Date[]): number {
  let smallest = Number.POSITIVE_INFINITY
  for (const [index, tick] of ticks.entries()) {
    const before = ticks[index - 1]
    if (before !== undefined) smallest = Math.min(smallest, (tick.getTime() - before.getTime()) / 1000)
  }
  return smallest
}
