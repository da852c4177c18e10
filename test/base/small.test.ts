import { describe, expect, it } from 'vitest'
import { backoffMs, getAtPath, isUuid, newId, parseDotPath, suggest, systemClock } from '../../src/base/index.ts'

describe('newId', () => {
  it('makes UUIDs of version 7 that sort by the moment they were made', () => {
    const ids = [1, 2, 3, 1_800_000_000_000].map((ms) => newId(ms))
    expect(ids.every(isUuid)).toBe(true)
    expect(ids.every((id) => id[14] === '7' && '89ab'.includes(id.charAt(19)))).toBe(true)
    expect(ids.toSorted()).toEqual(ids)
  })

  it('never repeats, also within one millisecond', () => {
    expect(new Set(Array.from({ length: 10_000 }, () => newId(5))).size).toBe(10_000)
  })

  it('of one millisecond sort in the order in which they were made', () => {
    for (let ms = 100; ms < 120; ms++) {
      const ids = Array.from({ length: 2_000 }, () => newId(ms))
      expect(ids).toEqual(ids.toSorted())
    }
  })
})

describe('a dotted path', () => {
  const value = { data: { items: [{ id: 7 }], '0': 'zero' } }

  it.each([
    ['data.items[0].id', 7],
    ['data.items.0.id', 7],
    ['data.0', 'zero'],
    ['data.items[1].id', undefined],
    ['data.items.length', undefined],
    ['constructor', undefined],
    ['', value],
  ])('%j leads to %j', (path, found) => {
    expect(getAtPath(value, parseDotPath(path))).toEqual(found)
  })
})

describe('backoffMs', () => {
  const policy = { baseMs: 100, factor: 2, maxMs: 1_000, jitterFloor: 0.5 }

  it.each([
    [1, 0, 50],
    [1, 1, 100],
    [3, 1, 400],
    [9, 1, 1_000],
    [9, 0, 500],
  ])('after attempt %i with chance %d is %i ms', (attempt, chance, ms) => {
    expect(backoffMs(policy, attempt, () => chance)).toBe(ms)
  })
})

describe('suggest', () => {
  it.each([
    ['overide', ', did you mean override?'],
    ['naem', ', did you mean name?'],
    ['xyz', ''],
  ])('answers %j with %j', (word, hint) => {
    expect(suggest(word, ['name', 'override', 'base_url'])).toBe(hint)
  })
})

describe('the system clock', () => {
  it('ends a sleep when its signal aborts, and does not begin one that is aborted', async () => {
    const stop = new AbortController()
    const asleep = systemClock.sleep(3_600_000, stop.signal)
    stop.abort()
    await asleep
    await systemClock.sleep(3_600_000, stop.signal)
    expect(stop.signal.aborted).toBe(true)
  })
})
