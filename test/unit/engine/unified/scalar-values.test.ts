import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toDateTime } from '../../../../src/engine/unified/scalar-values.ts'
import { caseCount } from '../../../support/case-count.ts'

const YEAR_3000_MS = 32_503_680_000_000
const offset = fc.tuple(fc.constantFrom('+', '-'), fc.nat({ max: 14 }), fc.constantFrom('00', '30', '45'))
const fraction = fc.oneof(
  fc.constantFrom('', '.0', '.000', '.000000', '.000123', '.0001', '.0000000', '.100', '.999999999'),
  fc.stringMatching(/^\.[0-9]{1,9}$/),
)

describe('a time', () => {
  it('with an offset keeps its fraction: the offset changes hours and minutes alone', () => {
    const time = fc.integer({ min: 0, max: YEAR_3000_MS / 1_000 })
    fc.assert(
      fc.property(time, fraction, offset, (seconds, written, [sign, hours, minutes]) => {
        const local = new Date(seconds * 1_000).toISOString().slice(0, -5)
        const shiftMs = (sign === '+' ? -1 : 1) * (hours * 60 + Number(minutes)) * 60_000
        const utc = new Date(seconds * 1_000 + shiftMs).toISOString().slice(0, -5)
        const text = `${local}${written}${sign}${String(hours).padStart(2, '0')}:${minutes}`
        expect(toDateTime(text)).toBe(`${utc}${/[1-9]/.test(written) ? written : ''}Z`)
        expect(toDateTime(`${local}${written}Z`)).toBe(`${local}${written}Z`)
      }),
      { numRuns: caseCount(300, 10_000) },
    )
  })
})
