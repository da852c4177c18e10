import { describe, expect, it } from 'vitest'
import { decrypt, encrypt } from '../../src/secrets/encryption.ts'

const KEY = Buffer.alloc(32, 7)

describe('a sealed value', () => {
  it('opens with the same key in the same place', () => {
    expect(decrypt(KEY, 'here', encrypt(KEY, 'here', 'grüße')).toString()).toBe('grüße')
  })

  it('is different every time, so that equal secrets cannot be told', () => {
    expect(encrypt(KEY, 'here', 'x')).not.toEqual(encrypt(KEY, 'here', 'x'))
  })

  it.each([
    ['another key', () => decrypt(Buffer.alloc(32, 8), 'here', encrypt(KEY, 'here', 'x'))],
    ['another place', () => decrypt(KEY, 'there', encrypt(KEY, 'here', 'x'))],
    ['a shortened value', () => decrypt(KEY, 'here', encrypt(KEY, 'here', 'x').subarray(0, 80))],
    [
      'an unknown format',
      () => decrypt(KEY, 'here', Buffer.concat([Buffer.of(9), encrypt(KEY, 'here', 'x').subarray(1)])),
    ],
  ])('does not open with %s', (_, open) => {
    expect(open).toThrow()
  })

  it('does not open when any one of its bytes is flipped', () => {
    const sealed = encrypt(KEY, 'here', 'secret')
    for (let at = 0; at < sealed.length; at++) {
      const damaged = Buffer.from(sealed)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      expect(() => decrypt(KEY, 'here', damaged), `byte ${at}`).toThrow()
    }
  })
})
