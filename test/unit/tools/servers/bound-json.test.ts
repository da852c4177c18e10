import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../src/foundation/json/index.ts'
import { boundJson } from '../../../../src/tools/servers/bound-json.ts'

describe('the beginning of a value', () => {
  it.each<[Json, number, Json]>([
    ['abcdef', 3, 'abc'],
    [['ab', 'cd', 'ef'], 4, ['ab', 'c']],
    [{ a: 'b', c: 'd' }, 3, { a: 'b', c: '' }],
    [[[1], [2], [3]], 3, [[1], []]],
  ])('of %j with %i characters is %j', (value, characters, beginning) => {
    expect(boundJson(value, characters)).toEqual(beginning)
  })

  it('is the value itself when it is no longer', () => {
    const value = { a: [1, 'two', null, { b: true }] }
    expect(boundJson(value, JSON.stringify(value).length)).toBe(value)
  })

  it('is changed where a text is cut, so that no part of what is masked is left', () => {
    const mask = (text: string) => text.replaceAll('secret', '***')
    expect(boundJson({ a: 'xx', b: 'a secret' }, 9, mask)).toEqual({ a: 'xx', b: 'a **' })
  })

  it('costs no more than what is copied', () => {
    let visited = 0
    const items = Array.from({ length: 1_000 }, () => ({
      get a() {
        visited += 1
        return 'x'
      },
    }))
    boundJson(items, 30)
    expect(visited).toBeLessThan(40)
  })
})
