import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { createKeySource } from '../../../../src/engine/formats/signature/key-source.ts'
import { compileSignature } from '../../../../src/engine/formats/signature/registry.ts'
import { constantTimeEqual } from '../../../../src/engine/formats/signature/secret.ts'

const START = Date.parse('2026-01-01T00:00:00Z')
const URL = 'https://keys.example.com/jwks'

/** A source over scripted answers; every fetch is counted, and time moves by hand. */
function scripted(answer: () => { status: number; body: string } | Error) {
  const state = { nowMs: START, fetches: 0 }
  const now = () => new Date(state.nowMs)
  const keys = createKeySource({
    now,
    fetchKey: async () => {
      state.fetches += 1
      const given = answer()
      if (given instanceof Error) throw given
      return { status: given.status, body: Buffer.from(given.body) }
    },
  })
  return { state, now, keys }
}

describe('public keys of senders', () => {
  test('are fetched once while they are fresh, also by readers at the same time', async () => {
    const { state, keys } = scripted(() => ({ status: 200, body: 'k' }))
    await Promise.all([keys.read(URL), keys.read(URL)])
    state.nowMs += 599_999
    expect(await keys.read(URL)).toEqual({ kind: 'ok', value: 'k' })
    expect(state.fetches).toBe(1)
    state.nowMs += 1
    await keys.read(URL)
    expect(state.fetches).toBe(2)
  })

  test('are read again for an unknown key, once a minute', async () => {
    const { state, keys } = scripted(() => ({ status: 200, body: 'k' }))
    await keys.read(URL)
    await keys.reread(URL)
    state.nowMs += 59_999
    await keys.reread(URL)
    expect(state.fetches).toBe(1)
    state.nowMs += 1
    await keys.reread(URL)
    await keys.reread(URL)
    expect(state.fetches).toBe(2)
  })

  test.each([
    ['a network that fails', new Error('down'), 'down'],
    ['a server that fails', { status: 503, body: '' }, 'answered 503'],
    ['a server that has enough', { status: 429, body: '' }, 'answered 429'],
  ])('%s is no result, and is fetched again after a minute', async (_what, answer, message) => {
    const { state, keys } = scripted(() => answer)
    await expect(keys.read(URL)).rejects.toThrow(message)
    await expect(keys.read(URL)).rejects.toThrow(message)
    expect(state.fetches).toBe(1)
    state.nowMs += 60_000
    await expect(keys.read(URL)).rejects.toThrow(message)
    expect(state.fetches).toBe(2)
  })

  test.each([
    ['an address without keys', { status: 404, body: '' }, 'answered 404'],
    ['a document without end', { status: 200, body: 'x'.repeat(256 * 1024 + 1) }, 'too long'],
  ])('%s rejects, and is asked again after a minute', async (_what, answer, reason) => {
    const { state, keys } = scripted(() => answer)
    expect(await keys.read(URL)).toEqual({ kind: 'invalid', reason: expect.stringContaining(reason) })
    state.nowMs += 60_000
    await keys.read(URL)
    expect(state.fetches).toBe(2)
  })

  test('a flood of addresses is not passed on', async () => {
    const { state, keys } = scripted(() => ({ status: 404, body: '' }))
    for (let index = 0; index < 30; index += 1) await keys.read(`${URL}/${index}`)
    await expect(keys.read(`${URL}/30`)).rejects.toThrow('too many public keys')
    await keys.read('https://other.example.com/')
    expect(state.fetches).toBe(31)
    state.nowMs += 60_000
    await keys.read(`${URL}/31`)
    expect(state.fetches).toBe(32)
  })

  test('a flood of one owner leaves the fetches of others, up to the limit of the host', async () => {
    const { state, keys } = scripted(() => ({ status: 404, body: '' }))
    const flood = async (owner: number) => {
      for (let index = 0; index < 30; index += 1) await keys.ofOwner(`${owner}`).read(`${URL}/${owner}/${index}`)
    }
    await flood(0)
    await expect(keys.ofOwner('0').read(`${URL}/x`)).rejects.toThrow('too many public keys')
    for (let owner = 1; owner < 10; owner += 1) await flood(owner)
    await expect(keys.ofOwner('10').read(`${URL}/x`)).rejects.toThrow('too many public keys')
    expect(state.fetches).toBe(300)
  })

  test('a flood of addresses takes away no document that is known, for a day', async () => {
    let status = 200
    const { state, keys } = scripted(() => ({ status, body: 'k' }))
    await keys.read(URL)
    status = 404
    for (let round = 0; round < 20; round += 1) {
      state.nowMs += 60_000
      for (let index = 0; index < 30; index += 1) await keys.read(`${URL}/${round}/${index}`)
      expect(await keys.read(URL)).toEqual({ kind: 'ok', value: 'k' })
    }
    expect(state.fetches).toBe(601)
    state.nowMs = START + 24 * 3_600_000
    for (let index = 0; index < 30; index += 1) await keys.read(`${URL}/late/${index}`)
    await expect(keys.read(URL)).rejects.toThrow('too many public keys')
  })

  test('a key that is new to the set is found as soon as the set may be read again', async () => {
    const [before, after] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
    const keySet = (pair: typeof before, kid: string) =>
      JSON.stringify({ keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid }] })
    let served = keySet(before, 'old')
    const { state, now, keys } = scripted(() => ({ status: 200, body: served }))
    const verify = compileSignature({ format: 'jwt', config: { jwks_url: URL } })
    const judge = async (pair: typeof before, kid: string) => {
      const token = await new SignJWT({ exp: START / 1000 + 3600 })
        .setProtectedHeader({ alg: 'EdDSA', kid })
        .sign(pair.privateKey)
      const headers = { authorization: `Bearer ${token}` }
      const delivery = { method: 'POST', url: URL, headers, query: {}, body: Buffer.of(), payload: null }
      const scope = { account: { context: {}, credentials: {}, environmentVariables: {} }, call: {} }
      return (await verify(delivery, scope, { now, keys })).kind
    }
    expect(await judge(before, 'old')).toBe('valid')
    served = keySet(after, 'new')
    expect(await judge(after, 'new')).toBe('invalid')
    expect(await judge(before, 'old')).toBe('valid')
    state.nowMs += 60_000
    expect(await judge(after, 'new')).toBe('valid')
    expect(await judge(before, 'old')).toBe('invalid')
    expect(state.fetches).toBe(2)
  })
})

describe('a comparison', () => {
  test.each([
    ['', '', true],
    ['abc', 'abc', true],
    ['abc', Buffer.from('abc'), true],
    ['abc', 'abd', false],
    ['abc', 'abcd', false],
    ['abc', '', false],
    ['x'.repeat(1000), 'x', false],
  ])('%# is right for all lengths', (left, right, expected) => {
    expect(constantTimeEqual(left, right)).toBe(expected)
  })
})
