import { describe, expect, it } from 'vitest'
import { DistinctCounter, type DistinctState, IDENTIFIERS_MAX } from '../../../../src/sync/jobs/distinct-counter.ts'
import { identityOf } from '../../../../src/sync/jobs/record-id.ts'

function idsFrom(first: number, length: number): string[] {
  return Array.from({ length }, (_, index) => `gid://shop/Product/${first + index}`)
}

/** As another process finds it. */
function stored(ids: DistinctCounter): DistinctState {
  return JSON.parse(JSON.stringify(ids.state))
}

describe('counting different identifiers', () => {
  it('is exact up to the limit, repetitions included', () => {
    const ids = new DistinctCounter()
    ids.add([...idsFrom(0, IDENTIFIERS_MAX), ...idsFrom(0, 30)])
    expect(ids.count(IDENTIFIERS_MAX + 30)).toEqual({ distinct: IDENTIFIERS_MAX, duplicates: 30, isEstimate: false })
  })

  it('is a lower bound after it: what was repeated among those counted', () => {
    const ids = new DistinctCounter()
    ids.add([...idsFrom(0, 30), ...idsFrom(0, IDENTIFIERS_MAX + 1), ...idsFrom(0, 5)])
    ids.add(idsFrom(0, 50))
    const bound = { distinct: IDENTIFIERS_MAX, duplicates: 30, isEstimate: true }
    expect(ids.count(IDENTIFIERS_MAX + 86)).toEqual(bound)
    expect(new DistinctCounter(stored(ids)).count(IDENTIFIERS_MAX + 86)).toEqual(bound)
  })

  it('stays exact when it is stopped behind the last record', () => {
    const ids = new DistinctCounter()
    ids.add([...idsFrom(0, 7), ...idsFrom(0, 2)])
    ids.stop()
    expect([ids.size, ids.count(9)]).toEqual([0, { distinct: 7, duplicates: 2, isEstimate: false }])
    ids.add(idsFrom(7, 1))
    expect(ids.count(10)).toEqual({ distinct: 7, duplicates: 2, isEstimate: true })
  })

  it('goes on in another process, in pages of any size', () => {
    let ids = new DistinctCounter()
    for (const first of [0, 25, 25, 50, 500]) {
      ids = new DistinctCounter(stored(ids))
      ids.add(idsFrom(first, 50))
    }
    expect(ids.count(250)).toEqual({ distinct: 150, duplicates: 100, isEstimate: false })
  })

  it.each([
    ['hashes', { ids: [1, 2, 3] }],
    ['a sketch', { sketch: '#$##' }],
  ])('begins anew from a checkpoint of an earlier version with %s, as a lower bound', (_, state) => {
    const ids = new DistinctCounter(state as DistinctState)
    expect(ids.count(3)).toEqual({ distinct: 0, duplicates: 0, isEstimate: true })
    ids.add([...idsFrom(0, 4), ...idsFrom(0, 1)])
    expect(ids.count(8)).toEqual({ distinct: 4, duplicates: 1, isEstimate: true })
  })
})

describe('the identity of records', () => {
  it.each([
    ['the identifier', { id: 5, name: 'a' }, { id: 5, name: 'b' }, true],
    ['the identifier, as number or text', { id: 5 }, { id: '5' }, true],
    ['the content without one', { name: 'a' }, { name: 'b' }, false],
    ['the content when it is no text or number', { id: { of: 1 } }, { id: { of: 2 } }, false],
  ])('is %s', (_, one, other, isSame) => {
    expect(identityOf(one, ['id']) === identityOf(other, ['id'])).toBe(isSame)
  })
})
