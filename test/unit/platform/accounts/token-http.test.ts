import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { execute, queryOne } from '../../../../src/foundation/database/index.ts'
import type { EgressRequest } from '../../../../src/foundation/egress/index.ts'
import { createTokenHttp } from '../../../../src/platform/accounts/index.ts'
import { deleteIdleHosts } from '../../../../src/platform/accounts/sql/token-host.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()

const ENVIRONMENT = '0192f000-0000-7000-8000-000000000001'
const OTHER_ENVIRONMENT = '0192f000-0000-7000-8000-000000000002'

let hosts = 0
/** A host of its own for each test. */
const newHost = () => `https://auth${++hosts}.example.com`
const OK = { status: 200, headers: {}, body: Buffer.from('{}') }

/** A third party that answers when it is let, and processes that ask it. */
function thirdParty() {
  const pending: ((answer: typeof OK | Failure) => void)[] = []
  const slept: number[] = []
  let now = Date.now()
  const clock = {
    now: () => new Date(now),
    monotonicMs: () => now,
    sleep: (ms: number, signal?: AbortSignal) => {
      slept.push(ms)
      // The timeout of a wait is for tests that let it pass.
      return new Promise<void>((resolve) => {
        if (ms < 10_000) setImmediate(resolve)
        timeouts.push(resolve)
        signal?.addEventListener('abort', () => resolve())
      })
    },
  }
  const timeouts: (() => void)[] = []
  const http = {
    send: async ({ url }: EgressRequest) => {
      const answer = await new Promise<typeof OK | Failure>((resolve) => pending.push(resolve))
      if (answer instanceof Error) throw answer
      return { ...answer, url }
    },
  }
  return {
    pending,
    slept,
    timeouts,
    process: () => createTokenHttp({ http, database, clock }),
    /** Answers every request, those that come later too, until `count` were answered. */
    async answer(count: number, answer: typeof OK | Failure = OK) {
      for (let answered = 0; answered < count; answered++) {
        await expect.poll(() => pending.length).toBeGreaterThan(0)
        pending.shift()?.(answer)
      }
    },
    pass: (ms: number) => (now += ms),
  }
}

const request = (host: string): EgressRequest =>
  ({ url: `${host}/token`, method: 'POST', headers: {}, timeoutMs: 1_000 }) as unknown as EgressRequest

describe('requests for tokens of one host', () => {
  it('are eight of a process at once, and the others follow as places get free', async () => {
    const { process, pending, answer } = thirdParty()
    const [host, other] = [newHost(), newHost()]
    const one = process()
    const sent = Array.from({ length: 20 }, () => one.send(request(host), ENVIRONMENT))
    await expect.poll(() => pending.length).toBe(8)
    const elsewhere = one.send(request(other), ENVIRONMENT)
    await expect.poll(() => pending.length).toBe(9)
    await answer(21)
    await Promise.all([...sent, elsewhere])
  })

  it('wait for a place only so long', async () => {
    const { process, pending, timeouts, answer } = thirdParty()
    const one = process()
    const host = newHost()
    const held = Array.from({ length: 8 }, () => one.send(request(host), ENVIRONMENT))
    await expect.poll(() => pending.length).toBe(8)
    const late = one.send(request(host), ENVIRONMENT)
    await expect.poll(() => timeouts.length).toBeGreaterThan(0)
    for (const timeout of timeouts) timeout()
    await expect(late).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED', retryAfterSeconds: 10 })
    await answer(8)
    await Promise.all(held)
  })

  it('are 50 per second after a burst of 25, by all processes together', async () => {
    const { process, slept, answer } = thirdParty()
    const host = newHost()
    const processes = [process(), process()]
    const sent = Array.from({ length: 60 }, (_, index) => processes[index % 2]?.send(request(host), ENVIRONMENT))
    await answer(60)
    await Promise.all(sent)
    const row = await queryOne<{ aheadMs: string }>(
      database.pool,
      `select extract(epoch from next_at - now()) * 1000 as "aheadMs" from token_host where host = :host`,
      { environmentId: ENVIRONMENT, host: new URL(host).host },
    )
    // 60 turns of 20 ms, less the time that the test took.
    expect(Number(row?.aheadMs)).toBeLessThanOrEqual(1_200)
    expect(slept.filter((ms) => ms < 10_000).length).toBeLessThanOrEqual(35)
  })

  it('are not sent when the process was paused while they waited', async () => {
    const { process, pending, answer, pass } = thirdParty()
    const host = newHost()
    const one = process()
    const held = Array.from({ length: 8 }, () => one.send(request(host), ENVIRONMENT))
    await expect.poll(() => pending.length).toBe(8)
    const paused = one.send(request(host), ENVIRONMENT).catch((error) => error)
    pass(60_000)
    await answer(8)
    await Promise.all(held)
    expect(await paused).toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    expect(pending).toEqual([])
  })

  it('wait for their turn', async () => {
    const { process, slept, answer } = thirdParty()
    const host = newHost()
    const sql = `insert into token_host (environment_id, host, next_at) values (:environmentId, :host, now() + interval '3 seconds')`
    await execute(database.pool, sql, { environmentId: ENVIRONMENT, host: new URL(host).host })
    const sent = process().send(request(host), ENVIRONMENT)
    await answer(1)
    await sent
    expect(slept).toEqual([expect.any(Number)])
    expect(slept[0]).toBeGreaterThan(1_500)
    expect(slept[0]).toBeLessThanOrEqual(2_500)
  })

  it.each([
    ['429 with Retry-After', { ...OK, status: 429, headers: { 'retry-after': '60' } }, 60],
    ['503 with Retry-After', { ...OK, status: 503, headers: { 'retry-after': '60' } }, 60],
  ])('are not sent by any process after a %s', async (_, reply, seconds) => {
    const { process, pending, answer } = thirdParty()
    const [host, other] = [newHost(), newHost()]
    const asked = process().send(request(host), ENVIRONMENT)
    await answer(1, reply)
    expect(await asked).toMatchObject({ status: reply.status })
    const failed = await process()
      .send(request(host), ENVIRONMENT)
      .catch((error) => error)
    expect(failed).toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
    expect(failed.retryAfterSeconds).toBeGreaterThan(seconds - 5)
    expect(failed.retryAfterSeconds).toBeLessThanOrEqual(seconds)
    expect(pending).toEqual([])
    const elsewhere = process().send(request(other), ENVIRONMENT)
    await answer(1)
    await elsewhere
    const ofAnother = process().send(request(host), OTHER_ENVIRONMENT)
    await answer(1)
    await ofAnother
  })

  it('are sent after five responses that cannot be used', async () => {
    const { process, answer } = thirdParty()
    const host = newHost()
    const one = process()
    for (let failure = 1; failure <= 5; failure++) {
      const asked = one.send(request(host), ENVIRONMENT)
      await Promise.all([
        expect(asked).rejects.toMatchObject({ reason: 'UPSTREAM_INVALID_RESPONSE' }),
        answer(1, new Failure('UPSTREAM_INVALID_RESPONSE', 'too large')),
      ])
    }
    const again = process().send(request(host), ENVIRONMENT)
    await answer(1)
    await again
  })

  it('are sent after a 503 without Retry-After', async () => {
    const { process, answer } = thirdParty()
    const host = newHost()
    const asked = process().send(request(host), ENVIRONMENT)
    await answer(1, { ...OK, status: 503 })
    await asked
    const again = process().send(request(host), ENVIRONMENT)
    await answer(1)
    expect(await again).toMatchObject({ status: 200 })
  })

  it('are not sent for a while after five without a response', async () => {
    const { process, answer } = thirdParty()
    const host = newHost()
    const one = process()
    for (let failure = 1; failure <= 5; failure++) {
      const asked = one.send(request(host), ENVIRONMENT)
      await Promise.all([
        expect(asked).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' }),
        answer(1, new Failure('DEADLINE_EXCEEDED', 'late')),
      ])
    }
    await expect(process().send(request(host), ENVIRONMENT)).rejects.toMatchObject({ reason: 'TOKEN_REQUEST_FAILED' })
  })
})

describe('idle hosts', () => {
  it('are forgotten after an hour', async () => {
    const host = new URL(newHost()).host
    const sql = `insert into token_host (environment_id, host, next_at) values (:environmentId, :host, now() - interval '61 minutes')`
    await execute(database.pool, sql, { environmentId: ENVIRONMENT, host })
    expect(await deleteIdleHosts(database.pool, 100)).toBe(1)
  })
})
