import { describe, expect, it } from 'vitest'
import { decrypt, encrypt } from '../../../../src/foundation/secrets/encryption.ts'

const KEY = Buffer.alloc(32, 7)

describe('an encrypted value', () => {
  it('decrypts with the same key and associated data', () => {
    expect(decrypt(KEY, 'here', encrypt(KEY, 'here', 'grüße')).toString()).toBe('grüße')
  })

  it('is different every time, so that equal secrets cannot be recognized', () => {
    expect(encrypt(KEY, 'here', 'x')).not.toEqual(encrypt(KEY, 'here', 'x'))
  })

  it.each([
    ['another key', () => decrypt(Buffer.alloc(32, 8), 'here', encrypt(KEY, 'here', 'x'))],
    ['other associated data', () => decrypt(KEY, 'there', encrypt(KEY, 'here', 'x'))],
    ['a shortened value', () => decrypt(KEY, 'here', encrypt(KEY, 'here', 'x').subarray(0, 80))],
    [
      'an unknown format',
      () => decrypt(KEY, 'here', Buffer.concat([Buffer.of(9), encrypt(KEY, 'here', 'x').subarray(1)])),
    ],
  ])('does not decrypt with %s', (_, attempt) => {
    expect(attempt).toThrow()
  })

  it('does not decrypt when any one of its bytes is flipped', () => {
    const encrypted = encrypt(KEY, 'here', 'secret')
    for (let at = 0; at < encrypted.length; at++) {
      const damaged = Buffer.from(encrypted)
      damaged[at] = (damaged[at] ?? 0) ^ 1
      expect(() => decrypt(KEY, 'here', damaged), `byte ${at}`).toThrow()
    }
  })
})
