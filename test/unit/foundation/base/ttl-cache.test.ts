import { describe, expect, it } from 'vitest'
import { readThrough, TtlCache } from '../../../../src/foundation/base/index.ts'
import { manualClock } from '../../../support/manual-clock.ts'

const clock = manualClock()

describe('a TTL cache', () => {
  it('returns an entry until its time to live has passed, and the stale one until it is evicted', () => {
    const cache = new TtlCache<number>({ max: 2, ttlMs: 100, clock })
    cache.set('a', 1)
    cache.set('b', 2, 50)
    clock.move(50)
    expect([cache.get('a'), cache.get('b'), cache.getStale('b')]).toEqual([1, undefined, 2])
    clock.move(50)
    expect([cache.get('a'), cache.getStale('a')]).toEqual([undefined, 1])
    cache.set('c', 3)
    expect([cache.getStale('b'), cache.getStale('c')]).toEqual([undefined, 3])
  })

  it('prolongs no entry when the clock is set back', () => {
    const cache = new TtlCache<number>({ max: 2, ttlMs: 100, clock })
    cache.set('a', 1)
    clock.move(-1_000)
    clock.move(100)
    expect(cache.get('a')).toBeUndefined()
  })
})

describe('readThrough', () => {
  const open = () => new TtlCache<Promise<string | undefined>>({ max: 2, ttlMs: 100, clock })

  it('shares one read among callers that miss together, and counts the time to live from its beginning', async () => {
    const cache = open()
    const { promise, resolve } = Promise.withResolvers<string>()
    let reads = 0
    const read = () => {
      reads += 1
      return promise
    }
    const both = [readThrough(cache, 'key', read), readThrough(cache, 'key', read)]
    clock.move(60)
    resolve('value')
    expect([await Promise.all(both), reads]).toEqual([['value', 'value'], 1])
    clock.move(40)
    await readThrough(cache, 'key', read)
    expect(reads).toBe(2)
  })

  it.each<[string, () => Promise<string | undefined>]>([
    ['what was not found', async () => undefined],
    ['an error', () => Promise.reject(new Error('unreachable'))],
  ])('does not cache %s', async (_, miss) => {
    const cache = open()
    await readThrough(cache, 'key', miss).catch(() => undefined)
    expect(await readThrough(cache, 'key', async () => 'value')).toBe('value')
  })
})
