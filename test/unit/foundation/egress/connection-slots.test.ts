import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createEgressPolicy, createHttpClient, type HttpClient } from '../../../../src/foundation/egress/index.ts'
import { startUpstream, type Upstream } from './upstream.ts'

const CONNECTIONS = 8
const LIMITS = { timeoutMs: 30_000, maxResponseBytes: 1_000, headers: {}, method: 'GET' } as const

function createClient(limits: { readonly connectionsMax?: number } = {}): HttpClient {
  const policy = createEgressPolicy({ allow: '127.0.0.0/8' })
  return createHttpClient({ policy, connectionsPerOriginMax: CONNECTIONS, ...limits })
}

/** A third party that answers `/slow` when it is told to. */
async function startSlowUpstream() {
  const held: ServerResponse[] = []
  const arrivals: (() => void)[] = []
  const upstream = await startUpstream(({ url }, response) => {
    if (url.startsWith('/slow')) held.push(response)
    else response.end('quick')
    for (const arrived of arrivals.splice(0)) arrived()
  })
  /** Resolves when so many slow requests have arrived. */
  const slow = async (count: number) => {
    while (held.length < count) await new Promise<void>((resolve) => arrivals.push(resolve))
  }
  const answer = () => held.splice(0).map((response) => response.end('slow'))
  return { upstream, held, slow, answer, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() }
}

function call({ send }: HttpClient, { origin }: Upstream, owner: string, path = '/slow', more = {}) {
  return send({ ...LIMITS, url: origin + path, owner, ...more })
}

const reasonsOf = async (calls: readonly Promise<unknown>[]) =>
  (await Promise.allSettled(calls)).map((each) => (each.status === 'rejected' ? each.reason.reason : 'answered'))

describe('connections to an origin that two environments call', () => {
  it('are there for one while the other waits for slow answers, by any number of calls', async () => {
    await using client = createClient()
    await using third = await startSlowUpstream()
    const ofLoud = Array.from({ length: 100 }, () => call(client, third.upstream, 'loud'))
    await third.slow(CONNECTIONS / 2)
    const { body } = await call(client, third.upstream, 'quiet', '/quick')
    expect(Buffer.from(body).toString()).toBe('quick')
    expect(third.held).toHaveLength(CONNECTIONS / 2)
    const settled = Promise.all(ofLoud)
    for (let served = 0; served < 100; ) {
      await third.slow(1)
      served += third.answer().length
    }
    await settled
  })

  it('are held by streams until their bodies are read or destroyed', async () => {
    await using client = createClient()
    await using third = await startSlowUpstream()
    const url = `${third.upstream.origin}/quick`
    const open = () => client.stream({ ...LIMITS, url, owner: 'loud' })
    const opened = await Promise.all(Array.from({ length: CONNECTIONS / 2 }, open))
    const next = open()
    await call(client, third.upstream, 'quiet', '/quick')
    expect(third.upstream.seen).toHaveLength(CONNECTIONS / 2 + 1)
    opened[0]?.body.destroy()
    await next
    for (const { body } of [...opened, await next]) body.destroy()
  })

  it('are given to no more calls than may wait: the rest of the owner gets 429, the other one its answer', async () => {
    await using client = createClient()
    await using third = await startSlowUpstream()
    const ofLoud = Array.from({ length: 1_010 }, () => call(client, third.upstream, 'loud'))
    const reasons = reasonsOf(ofLoud)
    await call(client, third.upstream, 'quiet', '/quick')
    const rejected = await Promise.race(ofLoud.map((each) => each.catch((error: unknown) => error)))
    expect(rejected).toMatchObject({ reason: 'RATE_LIMITED', retryAfterSeconds: 2 })
    await client[Symbol.asyncDispose]()
    third.answer()
    expect((await reasons).filter((reason) => reason === 'RATE_LIMITED')).toHaveLength(1_010 - 1_000 - CONNECTIONS / 2)
  })

  it('are not given to calls whose signal or deadline ended their wait', async () => {
    await using client = createClient()
    await using third = await startSlowUpstream()
    const busy = Array.from({ length: CONNECTIONS / 2 }, () => call(client, third.upstream, 'loud'))
    await third.slow(CONNECTIONS / 2)
    const ended = new AbortController()
    const waiting = [
      call(client, third.upstream, 'loud', '/aborted', { signal: ended.signal }),
      call(client, third.upstream, 'loud', '/late', { timeoutMs: 20 }),
    ]
    ended.abort()
    expect(await reasonsOf(waiting)).toEqual(['CANCELLED', 'DEADLINE_EXCEEDED'])
    third.answer()
    await Promise.all(busy)
    await call(client, third.upstream, 'loud', '/quick')
    expect(third.upstream.seen.map(({ url }) => url)).not.toContain('/late')
  })

  it('are bounded over all origins, so that many origins of one environment leave some to others', async () => {
    await using client = createClient({ connectionsMax: CONNECTIONS })
    await using one = await startSlowUpstream()
    await using other = await startSlowUpstream()
    const ofLoud = [one, other].flatMap(({ upstream }) =>
      Array.from({ length: CONNECTIONS }, () => call(client, upstream, 'loud')),
    )
    const reasons = reasonsOf(ofLoud)
    await one.slow(CONNECTIONS / 2)
    await call(client, other.upstream, 'quiet', '/quick')
    expect(one.held.length + other.held.length).toBe(CONNECTIONS / 2)
    await client[Symbol.asyncDispose]()
    await reasons
  })
})
