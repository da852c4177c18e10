import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  DistinctCounter,
  type DistinctLimits,
  type DistinctState,
  distinctLimits,
  HyperLogLog,
  hashText,
} from '../../../../src/sync/jobs/distinct-counter.ts'
import { identityOf } from '../../../../src/sync/jobs/record-id.ts'

/** Small, so that every test gets beyond it. */
const LIMITS: DistinctLimits = { exactMax: 200, checkpointMax: 50, precision: 10 }

function idsFrom(first: number, length: number): string[] {
  return Array.from({ length }, (_, index) => `id-${first + index}`)
}

/** As another process finds it. */
function stored(ids: DistinctCounter): DistinctState {
  return JSON.parse(JSON.stringify(ids.state))
}

describe('the hash of an identifier', () => {
  const families: readonly (readonly [string, (index: number) => string])[] = [
    ['numbers', String],
    ['numbers behind a prefix', (index) => `gid://shop/Product/${index}`],
    ['numbers before a suffix', (index) => `${index}@example.com`],
    ['letters that change places', (index) => index.toString(2).padStart(20, '0')],
    ['texts beyond ASCII', (index) => String.fromCodePoint(0x4e00 + (index % 20_000), 0x1f300 + (index >> 4))],
    ['growing texts', (index) => 'x'.repeat(index % 512) + index],
  ]
  const COUNT = 100_000
  const BUCKETS = 1_024

  it.each(families)('of %s is a safe integer of its own, spread evenly by high and low bits', (_, textOf) => {
    const hashes = Array.from({ length: COUNT }, (_, index) => hashText(textOf(index)))
    expect(new Set(hashes).size).toBe(COUNT)
    expect(hashes.every((hash) => Number.isSafeInteger(hash) && hash >= 0)).toBe(true)
    for (const bucketOf of [(hash: number) => hash % BUCKETS, (hash: number) => Math.floor(hash / (2 ** 53 / BUCKETS))])
      expect(unevenness(hashes.map(bucketOf))).toBeLessThan(6)
  })

  /** χ² of the buckets as standard deviations from what chance makes it. */
  function unevenness(buckets: readonly number[]): number {
    const counts = new Uint32Array(BUCKETS)
    for (const bucket of buckets) counts[bucket]!++
    const expected = COUNT / BUCKETS
    const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    return Math.abs(chiSquare - (BUCKETS - 1)) / Math.sqrt(2 * (BUCKETS - 1))
  }
})

describe('a sketch', () => {
  it('is off by at most five standard errors, from one value to a million', () => {
    const sketch = new HyperLogLog(12)
    let added = 0
    for (const size of [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]) {
      for (; added < size; added++) sketch.add(hashText(`id-${added}`))
      expect(Math.abs(sketch.estimate() - size) / size, `of ${size}`).toBeLessThan(5 * sketch.standardError)
    }
  })

  it('has this error for all values and sizes', () => {
    const sizes = {
      seed: fc.integer(),
      size: fc.integer({ min: 0, max: 5_000 }),
      precision: fc.integer({ min: 6, max: 12 }),
    }
    fc.assert(
      fc.property(fc.record(sizes), ({ seed, size, precision }) => {
        const sketch = new HyperLogLog(precision)
        for (let index = 0; index < size; index++) sketch.add(hashText(`${seed}/${index}`))
        expect(Math.abs(sketch.estimate() - size)).toBeLessThanOrEqual(Math.max(1, 6 * sketch.standardError * size))
      }),
    )
  })

  it('keeps the length of the run of zeros behind the bits that choose the register', () => {
    const rankOf = (hash: number) => {
      const sketch = new HyperLogLog(6)
      sketch.add(hash)
      return sketch.toString().charCodeAt(0) - new HyperLogLog(6).toString().charCodeAt(0)
    }
    const hashes = [2 ** 52, 2 ** 51, 2 ** 32, 2 ** 31, 2 ** 30, 2 ** 6, 0]
    expect(hashes.map(rankOf)).toEqual([1, 2, 21, 22, 23, 47, 48])
  })

  it('does not mind repetitions, order, or being stored half way', () => {
    const texts = fc.array(fc.nat({ max: 400 }).map(String), { maxLength: 600 })
    fc.assert(
      fc.property(texts, fc.nat({ max: 600 }), (values, cut) => {
        const whole = new HyperLogLog(8)
        for (const value of values) whole.add(hashText(value))
        const before = new HyperLogLog(8)
        for (const value of values.slice(0, cut)) before.add(hashText(value))
        const after = new HyperLogLog(8, JSON.parse(JSON.stringify(before.toString())))
        for (const value of [...values.slice(cut), ...values].toReversed()) after.add(hashText(value))
        expect(after.toString()).toBe(whole.toString())
      }),
    )
  })
})

describe('counting different identifiers', () => {
  it('is exact up to the bound, repetitions included, and an estimate after it', () => {
    const ids = new DistinctCounter(LIMITS)
    ids.add([...idsFrom(0, 200), ...idsFrom(0, 30)])
    expect(ids.count(230)).toEqual({ distinct: 200, duplicates: 30, isEstimate: false })
    ids.add(idsFrom(200, 1))
    expect(ids.count(231)).toMatchObject({ isEstimate: true })
  })

  it('says none are repeated as long as that may be an error of the estimate', () => {
    const ids = new DistinctCounter(LIMITS)
    ids.add(idsFrom(0, 5_000))
    expect(ids.count(5_000)).toEqual({ distinct: 5_000, duplicates: 0, isEstimate: true })
    expect(ids.count(5_010)).toMatchObject({ duplicates: 0 })
    ids.add(idsFrom(0, 5_000))
    const { distinct, duplicates } = ids.count(10_000)
    expect(distinct + duplicates).toBe(10_000)
    expect(Math.abs(duplicates - 5_000)).toBeLessThan(1_000)
  })

  it('counts exactly in another process while the checkpoint holds every identifier', () => {
    const ids = new DistinctCounter(LIMITS)
    ids.add(idsFrom(0, 50))
    const resumed = new DistinctCounter(LIMITS, stored(ids))
    resumed.add(idsFrom(25, 50))
    expect(resumed.count(100)).toEqual({ distinct: 75, duplicates: 25, isEstimate: false })
  })

  it('estimates in another process once it does not, with nothing lost', () => {
    const ids = new DistinctCounter(LIMITS)
    ids.add(idsFrom(0, 2_000))
    const resumed = new DistinctCounter(LIMITS, stored(ids))
    resumed.add(idsFrom(0, 2_000))
    const { distinct, isEstimate } = resumed.count(4_000)
    expect(isEstimate).toBe(true)
    expect(Math.abs(distinct - 2_000)).toBeLessThan(400)
  })

  it.each([1, 2, 10, 100, 1_000])('keeps the checkpoint of %i nodes below 100 KiB, however many records', (nodes) => {
    const limits = distinctLimits(nodes)
    for (const count of [limits.checkpointMax, limits.checkpointMax + 1, 20_000]) {
      const ids = new DistinctCounter(limits)
      ids.add(idsFrom(0, count))
      expect(JSON.stringify(ids.state).length * nodes, `with ${count} records`).toBeLessThan(100 * 1024)
    }
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
