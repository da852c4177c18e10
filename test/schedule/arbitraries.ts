import fc from 'fast-check'

/** One field: every value, a step, a value, a range or a list. */
function field(min: number, max: number): fc.Arbitrary<string> {
  const value = fc.integer({ min, max })
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant('*') },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: Math.max(2, max >> 1) }).map((step) => `*/${step}`) },
    { weight: 2, arbitrary: value.map(String) },
    { weight: 1, arbitrary: range },
    { weight: 1, arbitrary: fc.uniqueArray(value, { minLength: 2, maxLength: 4 }).map((values) => values.join(',')) },
  )
}

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
    field(0, 6),
  )
  .map((fields) => fields.filter((each) => each !== undefined).join(' '))
