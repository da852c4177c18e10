import { describe, expect, it } from 'vitest'
import { seal, unseal } from '../../src/vault/index.ts'

const KEY = Buffer.alloc(32, 7)

describe('a sealed value', () => {
  it('opens with the same key in the same place', () => {
    expect(unseal(KEY, 'here', seal(KEY, 'here', 'grüße')).toString()).toBe('grüße')
  })

  it('is different every time, so that equal secrets cannot be told', () => {
    expect(seal(KEY, 'here', 'x')).not.toEqual(seal(KEY, 'here', 'x'))
  })

  it.each([
    ['another key', () => unseal(Buffer.alloc(32, 8), 'here', seal(KEY, 'here', 'x'))],
    ['another place', () => unseal(KEY, 'there', seal(KEY, 'here', 'x'))],
    ['a shortened value', () => unseal(KEY, 'here', seal(KEY, 'here', 'x').subarray(0, 80))],
    ['an unknown format', () => unseal(KEY, 'here', Buffer.concat([Buffer.of(9), seal(KEY, 'here', 'x').subarray(1)]))],
  ])('does not open with %s', (_, open) => {
    expect(open).toThrow()
  })

  it('does not open when any one of its bytes is flipped', () => {
    const sealed = seal(KEY, 'here', 'secret')
    for (let at = 0; at < sealed.length; at++) {
      const damaged = Buffer.from(sealed)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      expect(() => unseal(KEY, 'here', damaged), `byte ${at}`).toThrow()
    }
  })
})
