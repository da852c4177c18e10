import { describe, expect, it } from 'vitest'
import { parseTime } from '../../../../src/foundation/base/index.ts'

describe('a time from elsewhere, read in a zone with summer time', () => {
  it('runs in such a zone', () => {
    expect(new Date('2026-07-01T00:00:00Z').getTimezoneOffset()).toBe(-120)
  })

  it.each([
    ['2026-07-01T10:00:00', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01 10:00:00', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01 10:00', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01', '2026-07-01T00:00:00.000Z'],
    ['07/01/2026 10:00:00', '2026-07-01T10:00:00.000Z'],
    ['Jul 1 2026 10:00', '2026-07-01T10:00:00.000Z'],
    ['Jul 1 2026 10:00 PM', '2026-07-01T22:00:00.000Z'],
    ['2026-07-01T10:00:00Z', '2026-07-01T10:00:00.000Z'],
    ['2026-07-01T10:00:00+02:00', '2026-07-01T08:00:00.000Z'],
    ['2026-07-01T10:00:00.5-0300', '2026-07-01T13:00:00.500Z'],
    ['Wed, 01 Jul 2026 10:00:00 GMT', '2026-07-01T10:00:00.000Z'],
    ['Wed, 1 Jul 2026 10:00:00 EST', '2026-07-01T15:00:00.000Z'],
    ['Wednesday, 01-Jul-26 10:00:00 GMT', '2026-07-01T10:00:00.000Z'],
    ['Wed Jul  1 10:00:00 2026', '2026-07-01T10:00:00.000Z'],
  ])('%s is %s', (text, expected) => {
    expect(new Date(parseTime(text)).toISOString()).toBe(expected)
  })

  it.each(['', 'tomorrow', '2026-13-01T00:00:00', 'Z', `2026-07-01T10:00:00Z${' '.repeat(128)}`])(
    '%j is none',
    (text) => {
      expect(parseTime(text)).toBeNaN()
    },
  )
})
