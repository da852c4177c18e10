import { Cron } from 'croner'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { catchUpTicks } from '../../../../src/sync/schedules/catch-up.ts'
import { cronExpression } from '../../../../src/sync/schedules/cron-expression.ts'
import { CATCH_UP } from '../../../../src/sync/schedules/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { cronText } from './arbitraries.ts'

const T = (text: string) => new Date(`2026-11-05T${text}Z`)
const owed = (expression: string, dueAt: Date, now: Date, catchUp = CATCH_UP) =>
  catchUpTicks(cronExpression(expression), dueAt, now, catchUp)

describe('a schedule owes', () => {
  it('the one tick that is due, and continues from it rather than from now', () => {
    expect(owed('*/5 * * * *', T('12:00:00'), T('12:04:59.999'))).toEqual({
      ticks: [T('12:00:00')],
      missed: undefined,
      next: T('12:05:00'),
    })
  })

  it('a tick at this very moment', () => {
    expect(owed('* * * * * *', T('12:00:00'), T('12:00:01')).ticks).toEqual([T('12:00:00'), T('12:00:01')])
  })

  it('every tick inside the window, oldest first', () => {
    const { ticks, missed, next } = owed('*/10 * * * *', T('12:00:00'), T('12:35:00'))
    expect(ticks).toEqual([T('12:00:00'), T('12:10:00'), T('12:20:00'), T('12:30:00')])
    expect([missed, next]).toEqual([undefined, T('12:40:00')])
  })

  it('the newest tick, however long ago, and records those before it', () => {
    const now = new Date('2026-11-15T12:00:00Z')
    expect(owed('0 0 * * *', new Date('2026-11-06T00:00:00Z'), now)).toEqual({
      ticks: [new Date('2026-11-15T00:00:00Z')],
      missed: { firstAt: new Date('2026-11-06T00:00:00Z'), lastAt: new Date('2026-11-14T00:00:00Z'), count: 9 },
      next: new Date('2026-11-16T00:00:00Z'),
    })
  })

  it('no more than one hundred ticks, and records the rest', () => {
    const { ticks, missed } = owed('* * * * * *', T('12:00:00'), T('12:10:00'))
    expect(ticks).toHaveLength(100)
    expect([ticks[0], ticks.at(-1)]).toEqual([T('12:08:21'), T('12:10:00')])
    expect(missed).toEqual({ firstAt: T('12:00:00'), lastAt: T('12:08:20'), count: 501 })
  })

  it('nothing beyond a window of no length but the newest', () => {
    const { ticks, missed } = owed('* * * * *', T('12:00:00'), T('12:05:30'), { windowMs: 0, ticksMax: 100 })
    expect(ticks).toEqual([T('12:05:00')])
    expect(missed?.count).toBe(5)
  })

  it('a bounded count of a stretch without end', () => {
    const { missed } = owed('* * * * * *', T('00:00:00'), T('23:00:00'))
    expect(missed?.count).toBe(1000)
  })

  it('exactly the ticks of another implementation, after any outage', () => {
    const outageMs = fc.integer({ min: 0, max: 3 * 3_600_000 })
    fc.assert(
      fc.property(cronText, outageMs, (text, ms) => {
        const oracle = new Cron(text, { utcOffset: 0, mode: '5-or-6-parts' })
        const dueAt = oracle.nextRun(T('12:00:00'))
        if (dueAt === null) return
        const now = new Date(dueAt.getTime() + ms)
        const { ticks, missed, next } = owed(text, dueAt, now)
        const expected: Date[] = []
        for (let tick: Date | null = dueAt; tick !== null && tick <= now && expected.length < 1000; )
          tick = oracle.nextRun(expected[expected.push(tick) - 1])
        if (expected.length === 1000) return // a long stretch is counted no further
        expect(ticks).toEqual(expected.slice(-ticks.length))
        expect(ticks.length + (missed?.count ?? 0)).toBe(expected.length)
        expect(next).toEqual(oracle.nextRun(ticks.at(-1)))
        expect(next > now).toBe(true)
      }),
      { numRuns: caseCount(20, 60) },
    )
  })
})
