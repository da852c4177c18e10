import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { TokenLookUps } from '../../../../src/server/api/pipeline/token-look-ups.ts'
import type { ApiServerOptions } from '../../../../src/server/api/server.ts'
import { ENVIRONMENT_ID, startHarness } from './support/harness.ts'
import { http1 } from './support/http.ts'

const VALID = 20
const INVALID = 300
const ADDRESS_MAX = 100
const PATH = '/widget/0192d3a4-0000-7000-8000-000000000001'

/** An authenticator that knows no token before its first look-up, and counts look-ups by token. */
function countingAuthenticator() {
  const lookUps = new Map<string, number>()
  const known = new Set<string>()
  let running = 0
  let runningMax = 0
  const authenticator: ApiServerOptions['authenticator'] = {
    parseToken: (token) =>
      token.startsWith('wrong') ? undefined : { hash: token, knownId: known.has(token) ? token : undefined },
    async authenticate(presented) {
      const token = presented?.hash ?? ''
      if (!known.has(token)) {
        lookUps.set(token, (lookUps.get(token) ?? 0) + 1)
        runningMax = Math.max(runningMax, ++running)
        await new Promise(setImmediate)
        running -= 1
      }
      if (!token.startsWith('valid')) throw new Failure('TOKEN_INVALID', 'the token is not valid')
      known.add(token)
      const ids = { tokenId: token, teamId: 't', environmentId: ENVIRONMENT_ID }
      return { kind: 'environment', ...ids, isOperator: false, scopes: undefined }
    },
  }
  return { authenticator, lookUps, runningMax: () => runningMax }
}

describe('1000 concurrent requests of one address', () => {
  it('answers none with a new valid token 429, and the others 401 up to the limit', async () => {
    const { authenticator, lookUps, runningMax } = countingAuthenticator()
    await using harness = await startHarness({ authenticator, limits: { rateAddressMax: ADDRESS_MAX } })
    const send = async (token: string) => {
      const { status } = await http1(harness.baseUrl, PATH, { headers: { authorization: `Bearer ${token}` } })
      return { token, status }
    }
    const tokens = Array.from({ length: 1_000 }, (_, index) =>
      index % 10 < 3 ? `invalid${(index * 7) % INVALID}-${index}` : `valid${index % VALID}`,
    )
    const answers = await Promise.all(tokens.map(send))
    const statusesOf = (prefix: string) =>
      answers.flatMap(({ token, status }) => (token.startsWith(prefix) ? [status] : []))
    expect(new Set(statusesOf('valid'))).toEqual(new Set([200]))
    const invalid = statusesOf('invalid')
    expect(invalid.filter((status) => status === 401)).toHaveLength(ADDRESS_MAX)
    expect(invalid.filter((status) => status === 429)).toHaveLength(INVALID - ADDRESS_MAX)
    expect(Math.max(...lookUps.values())).toBe(1)
    expect(runningMax()).toBeLessThanOrEqual(2)
    expect(await send('valid-and-new')).toMatchObject({ status: 200 })
  })

  it('counts one unknown token once, however many requests present it at once', async () => {
    const lookUp = Promise.withResolvers<void>()
    let requests = 0
    const authenticator: ApiServerOptions['authenticator'] = {
      parseToken(hash) {
        requests += 1
        return { hash, knownId: undefined }
      },
      async authenticate() {
        await lookUp.promise
        throw new Failure('TOKEN_INVALID', 'the token is not valid')
      },
    }
    await using harness = await startHarness({ authenticator, limits: { rateAddressMax: 2 } })
    const send = () => http1(harness.baseUrl, PATH, { headers: { authorization: 'Bearer invalid' } })
    const answers = Promise.all(Array.from({ length: 20 }, send))
    await expect.poll(() => requests).toBe(20)
    lookUp.resolve()
    expect((await answers).map(({ status }) => status)).toEqual(Array(20).fill(401))
    expect(await send()).toMatchObject({ status: 401 })
    expect(await send()).toMatchObject({ status: 429 })
  })

  it('looks nothing up for a text that cannot be a token, nor for none', async () => {
    const { authenticator, lookUps } = countingAuthenticator()
    await using harness = await startHarness({ authenticator, limits: { rateAddressMax: 2 } })
    const send = (headers: Record<string, string>) => http1(harness.baseUrl, PATH, { headers })
    expect(await send({})).toMatchObject({ status: 401 })
    expect(await send({ authorization: 'Bearer wrong' })).toMatchObject({ status: 401 })
    expect(await send({ authorization: 'Bearer wrong' })).toMatchObject({ status: 429 })
    expect(await send({})).toMatchObject({ status: 429 })
    expect(lookUps.has('invalid')).toBe(false)
  })
})

describe('look-ups of tokens', () => {
  const { signal } = new AbortController()

  it('takes turns between addresses', async () => {
    const lookUps = new TokenLookUps()
    const order: string[] = []
    const find = (address: string, key: string) =>
      lookUps.find({ address, key, signal }, async () => {
        order.push(key)
        await new Promise(setImmediate)
      })
    const many = Array.from({ length: 100 }, (_, index) => find('one', `one ${index}`))
    await find('other', 'other')
    expect(order.indexOf('other')).toBeLessThanOrEqual(3)
    await Promise.all(many)
  })

  it('forgets one that waits when its request has ended, unless another one presents the same token', async () => {
    const lookUps = new TokenLookUps()
    const blocked = Promise.withResolvers<void>()
    const running = Array.from({ length: 2 }, (_, index) =>
      lookUps.find({ address: 'one', key: `running ${index}`, signal }, () => blocked.promise),
    )
    const read: string[] = []
    const find = (key: string, of: AbortSignal) =>
      lookUps.find({ address: 'one', key, signal: of }, async () => read.push(key))
    const ended = new AbortController()
    const alone = find('alone', ended.signal)
    const left = find('shared', ended.signal)
    const stays = find('shared', signal)
    ended.abort()
    await expect(alone).rejects.toMatchObject({ reason: 'CANCELLED' })
    blocked.resolve()
    await Promise.all([...running, left, stays])
    expect(read).toEqual(['shared'])
  })
})
