import { describe, expect, it } from 'vitest'
import { chosenToken, hashToken, mintToken } from '../../../../src/platform/tenancy/token-format.ts'

describe('an API token', () => {
  it('is found again by its hash', () => {
    const { token, hash, hint } = mintToken('environment')
    expect(token).toMatch(/^pbe_[0-9A-Za-z]{38}$/)
    expect(hashToken(token)).toEqual(hash)
    expect(token.endsWith(hint)).toBe(true)
  })

  it('with a typo is rejected by its checksum, without a look-up', () => {
    const { token } = mintToken('team')
    const typo = token.slice(0, 10) + (token[10] === 'a' ? 'b' : 'a') + token.slice(11)
    expect(hashToken(typo)).toBeUndefined()
  })

  it.each([['', 'short', 'x'.repeat(31), `with space ${'x'.repeat(32)}`, 'x'.repeat(257)]].flat())(
    'cannot be %j',
    (text) => {
      expect(hashToken(text)).toBeUndefined()
      expect(chosenToken(text)).toBeUndefined()
    },
  )

  it('may be chosen by the operator when it is long enough', () => {
    const chosen = chosenToken('correct-horse-battery-staple-0123456789')
    expect(hashToken('correct-horse-battery-staple-0123456789')).toEqual(chosen?.hash)
  })
})
