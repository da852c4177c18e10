import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FairSemaphore } from '../../../../src/foundation/fair/index.ts'

const takeAll = (places: FairSemaphore, owner: string) => {
  const releases: (() => void)[] = []
  for (let release = places.tryAcquire(owner); release !== undefined; release = places.tryAcquire(owner))
    releases.push(release)
  return releases
}

it('gives one owner half of the places, and two owners a third each', () => {
  const places = new FairSemaphore(12)
  expect(takeAll(places, 'a')).toHaveLength(6)
  expect(takeAll(places, 'b')).toHaveLength(3)
  const even = new FairSemaphore(12)
  const held = { a: 0, b: 0 }
  for (let round = 0; round < 12; round++)
    for (const owner of ['a', 'b'] as const) if (even.tryAcquire(owner) !== undefined) held[owner]++
  expect(held).toEqual({ a: 4, b: 4 })
})

it('releases a permit once, however often it is called', () => {
  const places = new FairSemaphore(2)
  const release = places.tryAcquire('a')
  expect(places.tryAcquire('a')).toBeUndefined()
  release?.()
  release?.()
  expect(takeAll(places, 'a')).toHaveLength(1)
})

it('has a place for a newcomer whenever one is free, and never hands out more than there are', () => {
  const step = fc.record({ owner: fc.constantFrom('a', 'b', 'c'), isTake: fc.boolean() })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 100 }), (max, steps) => {
      const places = new FairSemaphore(max)
      const held: { readonly owner: string; readonly release: () => void }[] = []
      for (const { owner, isTake } of steps) {
        const place = isTake ? places.tryAcquire(owner) : undefined
        if (place !== undefined) held.push({ owner, release: place })
        else if (!isTake) held.splice(0, 1)[0]?.release()
        expect(held.length).toBeLessThanOrEqual(max)
      }
      const newcomer = places.tryAcquire('newcomer')
      expect(newcomer !== undefined).toBe(held.length < max)
    }),
  )
})
