import { Cron } from 'croner'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkCronExpression } from '../../../../src/sync/schedules/check-cron-expression.ts'
import { cronExpression, nextTicks } from '../../../../src/sync/schedules/cron-expression.ts'
import { caseCount } from '../../../support/case-count.ts'
import { cronText } from './arbitraries.ts'

const FROM = new Date('2026-11-05T12:00:00.000Z')

function rulesOf(text: string, minTickGapSeconds = 1): readonly string[] {
  return checkCronExpression(text, { minTickGapSeconds, from: FROM, field: 'cron_expression' }).map(({ rule }) => rule)
}

function descriptionOf(text: string): string {
  const [violation] = checkCronExpression(text, { minTickGapSeconds: 1, from: FROM, field: 'cron_expression' })
  return violation?.description ?? ''
}

function iso(dates: readonly Date[]): readonly string[] {
  return dates.map((date) => date.toISOString())
}

describe('a cron expression is accepted', () => {
  it.each([
    ['five fields', '*/5 * * * *'],
    ['six fields, seconds first', '*/10 * * * * *'],
    ['names', '0 9 * JAN-MAR,dec Mon-Fri'],
    ['steps from a value', '0/15 * * * *'],
    ['lists of ranges', '0 1-3,5,7-9/2 * * *'],
    ['the last day of the month', '0 0 L * *'],
    ['the last Friday', '0 0 * * 5L'],
    ['the second Monday', '0 0 * * MON#2'],
    ['Sunday as 7', '0 0 * * 7'],
    ['a list that names a value twice', '5,1-10,0-59/5 1,1 * * *'],
    ['names in lists that overlap', '0 0 * JAN-MAR,feb Mon-Fri,wed,0,7'],
    ['a question mark', '0 0 ? * 1'],
    ['a nickname', '@hourly'],
    ['another nickname', '@weekdays'],
    ['a nickname in capitals', '@DAILY'],
    ['midnight', ' @midnight '],
    ['a list of nth weekdays', '0 0 * * 5#3,1#1'],
    ['a list of nth weekdays and others', '0 0 * * MON#1,fri,6L'],
    ['29 February', '0 0 29 2 *'],
    ['a fifth Monday in February, decades ahead', '0 0 * 2 1#5'],
    ['blanks and tabs around and between', ' \t0   9 *\t* * '],
    ['Thursday, which begins with no H', '0 0 * * THU'],
    ['March and Wednesday', '0 0 * MAR WED'],
  ])('with %s', (_, text) => {
    expect(rulesOf(text)).toEqual([])
  })
})

describe('a list', () => {
  it.each([
    ['1-5,3 * * * *', '1,2,3,4,5 * * * *'],
    ['0 0 * * 0,7,SUN', '0 0 * * 0'],
    ['0 0 * * 5-7,1', '0 0 * * 0,1,5,6'],
    ['10/20,30 * * * * *', '10,30,50 * * * * *'],
    ['0 0 1 JAN,jan-MAR/2 *', '0 0 1 1,3 *'],
    ['0 0 1,L * *', '0 0 1,L * *'],
    ['*/15,*/20 * * * *', '0,15,20,30,40,45 * * * *'],
    ['*/10,7-9/2,*/25 * * * *', '0,7,9,10,20,25,30,40,50 * * * *'],
    ['0 0 */10,*/15 * *', '0 0 1,11,16,21,31 * *'],
    ['0 0 1 */5,*/6 *', '0 0 1 1,6,7,11 *'],
    ['0 0 * * */3,*/5', '0 0 * * 0,3,5,6'],
    ['*,5 * * * *', '* * * * *'],
    ['0 0 * * 1#1,mon#1,MON#1', '0 0 * * 1#1'],
    ['@midnight', '@daily'],
    ['@Yearly', '@ANNUALLY'],
    ['@weekends', '0 0 * * 6,7'],
  ])('%s fires as %s', (text, same) => {
    const ticks = (expression: string) => {
      const found = [FROM]
      for (const after of found) {
        const tick = cronExpression(expression).next(after)
        if (tick !== undefined && found.length < 30) found.push(tick)
      }
      return iso(found)
    }
    expect(ticks(text)).toEqual(ticks(same))
    expect(ticks(text)).toHaveLength(30)
  })
})

describe('a list of nth weekdays', () => {
  it('fires on each of them, in order, forwards and backwards', () => {
    const cron = cronExpression('0 0 * * 5#3,1#1,2L')
    const forwards = [FROM]
    for (const after of forwards) {
      const tick = cron.next(after)
      if (tick !== undefined && forwards.length < 7) forwards.push(tick)
    }
    const ticks = forwards.slice(1)
    expect(iso(ticks).map((text) => text.slice(0, 10))).toEqual([
      '2026-11-20',
      '2026-11-24',
      '2026-12-07',
      '2026-12-18',
      '2026-12-29',
      '2027-01-04',
    ])
    expect(ticks.slice(1).map((tick) => cron.previous(tick))).toEqual(ticks.slice(0, -1))
  })

  it('joins days of the month as one nth weekday does', () => {
    const ticks = nextTicks('0 0 10 * 5#3,1#1', FROM, 4)
    expect(iso(ticks).map((text) => text.slice(0, 10))).toEqual([
      '2026-11-10',
      '2026-11-20',
      '2026-12-07',
      '2026-12-10',
    ])
  })
})

describe('day of month and day of week', () => {
  it.each([
    ['0 0 * * 1', ['2026-11-09', '2026-11-16']],
    ['0 0 ? * 1', ['2026-11-09', '2026-11-16']],
    ['0 0 */1 * 1', ['2026-11-06', '2026-11-07']],
    ['0 0 1-31 * 1', ['2026-11-06', '2026-11-07']],
    ['0 0 */2 * 1', ['2026-11-07', '2026-11-09']],
    ['0 0 13 * 1', ['2026-11-09', '2026-11-13']],
  ])('are either of them unless one is a bare * or ?: %s', (text, days) => {
    expect(iso(nextTicks(text, FROM, 2)).map((tick) => tick.slice(0, 10))).toEqual(days)
  })
})

describe('a cron expression is rejected', () => {
  it.each([
    ['empty', '', 'cron.field_count', 'has 0 fields'],
    ['blank', '   ', 'cron.field_count', 'has 0 fields'],
    ['four fields, which a lenient parser takes as every minute', '* * * *', 'cron.field_count', 'has 4 fields'],
    ['one word', 'daily', 'cron.field_count', 'has 1 field,'],
    ['seven fields', '0 0 0 1 1 * 2027', 'cron.field_count', 'a year field is not supported'],
    ['a hash', 'H * * * *', 'cron.hash', 'H in its minute field'],
    ['a hash with a range', '0 H(1-5) * * *', 'cron.hash', 'H(1-5) in its hour field'],
    ['a small hash', 'h/5 * * * *', 'cron.hash', 'minute field'],
    ['a hash behind a digit', '0 0 2H 2 *', 'cron.hash', '2H in its day of month field'],
    ['a word with an H', '0 0 * JANH *', 'cron.value', 'JANH in its month field'],
    ['a hash in a list', '0,H * * * *', 'cron.hash', 'minute field'],
    ['the nearest weekday', '0 0 15W * *', 'cron.nearest_weekday', '15W in its day of month field'],
    ['the last weekday', '0 0 LW * *', 'cron.nearest_weekday', 'LW in its day of month field'],
    ['days before the last', '0 0 L-3 * *', 'cron.before_last', 'L-3 in its day of month field'],
    ['reboot', '@reboot', 'cron.reboot', '@reboot'],
    ['an unknown nickname', '@every5m', 'cron.nickname', '@hourly'],
    ['reboot in capitals', '@REBOOT', 'cron.reboot', '@reboot'],
    ['a list of too many nth weekdays', '0 0 * * 0#1,1#1,2#1,3#1,4#1,5#1', 'cron.value', 'up to 5 of 1#2'],
    ['a list with a sixth weekday', '0 0 * * 1#1,5#6', 'cron.value', '1#1,5#6 in its day of week field'],
    ['a minute that does not exist', '61 * * * *', 'cron.value', '61 in its minute field, which takes 0-59'],
    ['an hour that does not exist', '0 24 * * *', 'cron.value', '24 in its hour field'],
    ['a second that does not exist', '60 * * * * *', 'cron.value', '60 in its second field'],
    ['a month that does not exist', '0 0 1 13 *', 'cron.value', '13 in its month field'],
    ['a day that does not exist', '0 0 0 * *', 'cron.value', '0 in its day of month field'],
    ['a weekday that does not exist', '0 0 * * FOO', 'cron.value', 'FOO in its day of week field'],
    ['a sixth weekday', '0 0 * * 1#6', 'cron.value', '1#6 in its day of week field'],
    ['a range backwards', '0 5-1 * * *', 'cron.value', '5-1 in its hour field'],
    ['a step of nothing', '*/0 * * * *', 'cron.value', '*/0 in its minute field'],
    ['a list with a gap', '1,,2 * * * *', 'cron.value', '1,,2 in its minute field'],
    ['something else entirely', 'a b c d e', 'cron.value', 'a in its minute field'],
    ['30 February', '0 0 30 2 *', 'cron.never', '20 years: day of month 30, month 2, day of week *'],
    ['31 April', '0 0 31 4 *', 'cron.never', '20 years'],
    ['a text without end', `${'0,'.repeat(200)}0 * * * *`, 'cron.length', '255'],
  ])('for %s', (_, text, rule, description) => {
    expect(rulesOf(text)).toEqual([rule])
    expect(descriptionOf(text)).toContain(description)
  })

  it.each([
    ['*/30 * * * * *', 60, ['cron.gap']],
    ['0 * * * * *', 60, []],
    ['0,59 * * * *', 120, ['cron.gap']],
    ['@secondly', 2, ['cron.gap']],
    ['0 0 29 2 *', 86_400, []],
    ['59 23 31 12 *', 86_400, []],
  ])('when its ticks come too close: %s with %s s', (text, minTickGapSeconds, rules) => {
    expect(rulesOf(text, minTickGapSeconds)).toEqual(rules)
  })

  it('when the only tick lies beyond twenty years', () => {
    const from = new Date('2044-03-01T00:00:00Z')
    const [violation] = checkCronExpression('0 0 * 2 1#5', { minTickGapSeconds: 1, from, field: 'cron_expression' })
    expect(violation?.rule).toBe('cron.never')
  })
})

describe('next ticks', () => {
  it('are moments after the given one, in UTC', () => {
    expect(iso(nextTicks('30 6 * * MON', FROM, 3))).toEqual([
      '2026-11-09T06:30:00.000Z',
      '2026-11-16T06:30:00.000Z',
      '2026-11-23T06:30:00.000Z',
    ])
  })

  it('leave out a tick at the very moment, and include one a millisecond later', () => {
    expect(iso(nextTicks('0 12 * * *', FROM, 1))).toEqual(['2026-11-06T12:00:00.000Z'])
    expect(iso(nextTicks('0 12 * * *', new Date(FROM.getTime() - 1), 1))).toEqual(['2026-11-05T12:00:00.000Z'])
  })

  it('are fewer than asked for when there are no more within twenty years', () => {
    expect(iso(nextTicks('0 0 * 2 1#5', FROM, 5))).toEqual(['2044-02-29T00:00:00.000Z'])
  })

  it.each([
    ['59 23 31 12 *', 20],
    ['0 0 * 2 1#1,2#5', 21],
    ['0 0 * 2 0#5,1#5,2#5,3#5,5#1', 24],
  ])('are all of the twenty years, however dear they are to find: %s', (text, count) => {
    expect(nextTicks(text, FROM, 100)).toHaveLength(count)
  })

  it('are the same twice, although the parsed expression is shared', () => {
    const shared = cronExpression('*/7 * * * *')
    shared.next(new Date('2030-01-01T00:00:00Z'))
    expect(cronExpression('*/7 * * * *').next(FROM)?.toISOString()).toBe('2026-11-05T12:07:00.000Z')
  })

  it('agree with another implementation for any expression', () => {
    const moment = fc.date({
      min: new Date('2024-01-01T00:00:00Z'),
      max: new Date('2030-01-01T00:00:00Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(cronText, moment, (text, from) => {
        const oracle = new Cron(text, { utcOffset: 0, mode: '5-or-6-parts' })
        expect(iso(nextTicks(text, from, 10))).toEqual(iso(oracle.nextRuns(10, from)))
      }),
      { numRuns: caseCount(60, 300) },
    )
  })

  it('and previous ones undo each other', () => {
    const moment = fc.date({
      min: new Date('2024-01-01T00:00:00Z'),
      max: new Date('2030-01-01T00:00:00Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(cronText, moment, (text, from) => {
        const cron = cronExpression(text)
        const next = cron.next(from)
        if (next === undefined) return
        expect(next.getTime()).toBeGreaterThan(from.getTime())
        const back = cron.previous(next)
        expect(back === undefined || back <= from).toBe(true)
        if (back !== undefined) expect(cron.next(back)?.getTime()).toBe(next.getTime())
      }),
      { numRuns: caseCount(60, 300) },
    )
  })
})
