import { describe, expect, it } from 'vitest'
import { AccountVerifier, getIntegratedAccount, listIntegratedAccountHistory } from '../../src/accounts/index.ts'
import { Failure, type JsonObject } from '../../src/base/index.ts'
import type { CallOutcome, Proxy as Engine } from '../../src/proxy/index.ts'
import { CONFIG } from '../integrations/fixture.ts'
import { accountsFixture } from './fixture.ts'

const { database, tx, own, accountDeps, addInstallation, connect } = await accountsFixture()

const PROVED: JsonObject = {
  ...CONFIG,
  credentials: {
    format: 'api_key',
    config: { fields: [{ name: 'api_key', type: 'password', required: true }], verification: { path: '/me' } },
  },
}
const installation = await addInstallation(PROVED)
const connectOne = () => connect({ environmentIntegrationId: installation.id, credentials: { api_key: 'k' } })

const OK: CallOutcome = {
  ...{ kind: 'ok', status: 200, headers: {}, body: {}, result: {} },
  ...{ page: undefined, rateLimit: undefined },
}
const refusal = (status: number, action: 'fail' | 'retry'): CallOutcome => ({
  ...{ kind: 'upstream_error', status, message: 'Bad credentials', metadata: {} },
  ...{ headers: {}, body: {}, rateLimit: undefined, action },
})
const LIMITED: CallOutcome = {
  kind: 'rate_limited',
  limitedBy: 'upstream',
  status: 429,
  retryAfterSeconds: 120,
  rateLimit: undefined,
  body: {},
}

/** A verifier whose third party gives these answers in turn, and a clock to move. */
function verifier(...answers: readonly (CallOutcome | Failure)[]) {
  let now = Date.parse('2026-01-01T00:00:00Z')
  const asked: Parameters<Engine['call']>[] = []
  const proxy: Pick<Engine, 'call'> = {
    async call(...call) {
      asked.push(call)
      const answer = answers[Math.min(asked.length, answers.length) - 1]
      if (answer === undefined || answer instanceof Failure) throw answer ?? new Error('nothing to answer')
      return answer
    },
  }
  const clock = { now: () => new Date(now), sleep: async () => {} }
  const loop = new AccountVerifier({ ...accountDeps, database, proxy, clock, random: () => 1 })
  return { asked, runOnce: () => loop.runOnce(), pass: (ms: number) => (now += ms) }
}

const read = async (id: string) => await getIntegratedAccount(accountDeps, tx, own, id)

describe('a connecting account', () => {
  it('becomes active when the verification request of its credentials succeeds', async () => {
    const { id } = await connectOne()
    const { runOnce, asked } = verifier(OK)
    await runOnce()
    expect(await read(id)).toMatchObject({ status: 'active', lastError: '' })
    expect((await read(id)).lastActionResult).toMatchObject({ validation: [{ name: 'verification', ok: true }] })
    const [, access, request] = asked[0] ?? []
    expect(access?.credentials).toEqual({ api_key: 'k' })
    expect(request?.target).toEqual({ kind: 'verification', format: 'api_key' })
    await runOnce()
    expect(asked).toHaveLength(1)
  })

  it('becomes validation_error, with the answer, when the third party refuses it', async () => {
    const { id } = await connectOne()
    await verifier(refusal(401, 'fail')).runOnce()
    const lastError = 'the verification request answered 401: Bad credentials'
    expect(await read(id)).toMatchObject({ status: 'validation_error', lastError })
    expect((await read(id)).lastActionResult).toMatchObject({
      validation: [{ ok: false, status: 401, error: lastError }],
    })
    const [latest] = await listIntegratedAccountHistory(tx, own, id, { before: undefined, limit: 1 })
    expect(latest).toMatchObject({ fromStatus: 'connecting', cause: 'validation_failed', lastError })
  })

  it('stays, and is asked for again after a growing pause, while the third party does not answer', async () => {
    const { id } = await connectOne()
    const { runOnce, asked, pass } = verifier(new Failure('UPSTREAM_UNREACHABLE', 'api.example.com is away'), OK)
    await runOnce()
    await runOnce()
    expect(asked).toHaveLength(1)
    expect((await read(id)).status).toBe('connecting')
    pass(2_000)
    await runOnce()
    expect((await read(id)).status).toBe('active')
  })

  it('waits as long as the third party asks to', async () => {
    const { id } = await connectOne()
    const { runOnce, asked, pass } = verifier(LIMITED, OK)
    await runOnce()
    pass(119_000)
    await runOnce()
    expect(asked).toHaveLength(1)
    pass(1_000)
    await runOnce()
    expect((await read(id)).status).toBe('active')
  })

  it('is given up after five tries without an answer', async () => {
    const { id } = await connectOne()
    const { runOnce, asked, pass } = verifier(refusal(503, 'retry'))
    for (let round = 0; round < 6; round++) {
      await runOnce()
      pass(60_000)
    }
    expect(asked).toHaveLength(5)
    expect((await read(id)).status).toBe('validation_error')
  })

  it('with nothing to prove becomes active without a call', async () => {
    const action = { type: 'request', config: { path: '/hooks', method: 'POST' } }
    const { id: environmentIntegrationId } = await addInstallation({ ...CONFIG, actions: { post_install: action } })
    const { id } = await connect({ environmentIntegrationId, credentials: { api_key: 'k' } })
    const { runOnce, asked } = verifier(refusal(401, 'fail'))
    await runOnce()
    expect(asked).toEqual([])
    expect((await read(id)).status).toBe('active')
  })

  it('that two workers prove at once changes once', async () => {
    const { id } = await connectOne()
    await Promise.all([verifier(OK).runOnce(), verifier(OK).runOnce()])
    const history = await listIntegratedAccountHistory(tx, own, id, { before: undefined, limit: 9 })
    expect(history.map(({ cause }) => cause)).toEqual(['steps_passed', 'created'])
  })
})
