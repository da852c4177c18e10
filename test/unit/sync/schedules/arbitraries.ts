import fc from 'fast-check'

/** One field: every value, a step, a value, a range, a list of values or of steps. */
function field(min: number, max: number): fc.Arbitrary<string> {
  const value = fc.integer({ min, max })
  const steps = fc.integer({ min: 1, max: Math.max(2, max >> 1) }).map((step) => `*/${step}`)
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant('*') },
    { weight: 2, arbitrary: steps },
    { weight: 2, arbitrary: value.map(String) },
    { weight: 1, arbitrary: range },
    { weight: 1, arbitrary: fc.uniqueArray(value, { minLength: 2, maxLength: 4 }).map((values) => values.join(',')) },
    { weight: 1, arbitrary: fc.array(steps, { minLength: 2, maxLength: 3 }).map((items) => items.join(',')) },
  )
}

/** The nth of one or several weekdays of a month; the fifth is left out, it may be years away. */
const nthWeekdays = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 4 })
  .map((items) => items.map(([weekday, nth]) => `${weekday}#${nth}`).join(','))

/**
 * Expressions of five or six fields in the part of the dialect that all implementations share. Day of month stays below 29,
 * and stands alone where the day of week is restricted, so that every expression has ticks.
 */
export const cronText: fc.Arbitrary<string> = fc
  .tuple(
    fc.option(field(0, 59), { nil: undefined }),
    field(0, 59),
    field(0, 23),
    field(1, 28),
    field(1, 12),
    fc.oneof({ weight: 4, arbitrary: field(0, 6) }, { weight: 1, arbitrary: nthWeekdays }),
  )
  .map((fields) => fields.filter((each) => each !== undefined).join(' '))
