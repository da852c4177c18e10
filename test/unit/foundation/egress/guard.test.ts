import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { EgressPolicy } from '../../../../src/foundation/egress/address-policy.ts'
import type { ResolveAll } from '../../../../src/foundation/egress/connector.ts'
import { createEgressPolicy, createHttpClient, type HttpClient } from '../../../../src/foundation/egress/index.ts'
import { bypassUrls } from './bypass-urls.ts'
import { startUpstream, type Upstream } from './upstream.ts'

const GET = { method: 'GET', headers: {}, timeoutMs: 60_000, maxResponseBytes: 1_000 }
const closed = createEgressPolicy({ allow: '' })

let canary: Upstream
let canaryV6: Upstream
let reached: string[] = []

beforeAll(async () => {
  const answer: Parameters<typeof startUpstream>[0] = ({ url }, response) => {
    reached.push(url)
    response.end('reached')
  }
  canary = await startUpstream(answer)
  canaryV6 = await startUpstream(answer, '::1')
})

afterAll(async () => {
  await canary[Symbol.asyncDispose]()
  await canaryV6[Symbol.asyncDispose]()
})

beforeEach(() => {
  reached = []
})

/** A client for which every name means loopback, the worst resolver there is. */
function hostileNames(policy: EgressPolicy, ...answers: string[]): HttpClient {
  const addresses = answers.length > 0 ? answers : ['127.0.0.1']
  const resolveAll = async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  return createHttpClient({ policy, resolveAll })
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'reached'
  } catch (error) {
    return error instanceof Failure ? error.reason : String(error)
  }
}

describe('the guard', () => {
  it('reaches no canary by any form of an internal address', async () => {
    await using client = hostileNames(closed)
    const urls = [...bypassUrls(canary.port), ...bypassUrls(canaryV6.port)]
    expect(urls.length).toBeGreaterThan(700)
    const reasons = await Promise.all(urls.map((url) => reasonOf(client.send({ ...GET, url }))))
    expect(urls.filter((_url, index) => reasons[index] !== 'EGRESS_BLOCKED')).toEqual([])
    expect(canary.connections() + canaryV6.connections()).toBe(0)
  })

  it('reaches no canary through the streaming call either', async () => {
    await using client = hostileNames(closed)
    const reasons = await Promise.all(
      bypassUrls(canary.port).map((url) => reasonOf(client.stream({ ...GET, url, method: 'GET' }))),
    )
    expect(new Set(reasons)).toEqual(new Set(['EGRESS_BLOCKED']))
    expect(canary.connections()).toBe(0)
  })

  it.each([
    ['one of its addresses is internal', ['93.184.215.14', '127.0.0.1']],
    ['its IPv6 address is internal', ['93.184.215.14', '::1']],
    ['its IPv6 address is mapped', ['::ffff:127.0.0.1']],
    ['it has no address', []],
  ])('refuses a name when %s', async (_case, addresses) => {
    const resolveAll = async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    await using client = createHttpClient({ policy: closed, resolveAll })
    const url = `http://rebind.example:${canary.port}/`
    expect(await reasonOf(client.send({ ...GET, url }))).toBe('EGRESS_BLOCKED')
    expect(reached).toEqual([])
  })

  it('says which variable would allow a literal address', async () => {
    await using client = createHttpClient({ policy: closed })
    await expect(client.send({ ...GET, url: `http://127.0.0.1:${canary.port}/` })).rejects.toMatchObject({
      publicMessage: expect.stringContaining('set PATCHBAY_EGRESS_ALLOW'),
    })
  })

  it('names the host and not what it resolves to', async () => {
    await using client = hostileNames(closed, '10.11.12.13')
    await expect(client.send({ ...GET, url: 'http://intranet.example/' })).rejects.toMatchObject({
      reason: 'EGRESS_BLOCKED',
      publicMessage: `the host "intranet.example" may not be called: it does not resolve to public addresses only: ${closed.advice}`,
      metadata: { host: 'intranet.example' },
    })
  })

  it('dials only what it checked when the answer flips between queries', async () => {
    const policy: EgressPolicy = { ...closed, allows: (address) => address === '127.0.0.2' || closed.allows(address) }
    let queries = 0
    const resolveAll = async () => [{ address: queries++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }]
    await using client = createHttpClient({ policy, resolveAll })
    const url = `http://rebind.example:${canary.port}/`
    expect(await reasonOf(client.send({ ...GET, url }))).toBe('UPSTREAM_UNREACHABLE')
    expect(await reasonOf(client.send({ ...GET, url }))).toBe('EGRESS_BLOCKED')
    expect(reached).toEqual([])
  })

  it('closes a connection whose peer turns out to be internal, before a byte is sent', async () => {
    let checks = 0
    const talkedPast: EgressPolicy = { ...closed, allows: () => checks++ < 2 }
    await using client = createHttpClient({ policy: talkedPast })
    expect(await reasonOf(client.send({ ...GET, url: `${canary.origin}/` }))).toBe('EGRESS_BLOCKED')
    expect(checks).toBe(3)
    expect(reached).toEqual([])
  })

  it.each([301, 302, 303, 307, 308])('does not follow a %i to an internal address', async (status) => {
    const doorOnly: EgressPolicy = { ...closed, allows: (address) => address === '127.0.0.1' }
    const resolveAll: ResolveAll = async (name) =>
      name === 'door.example' ? [{ address: '127.0.0.1', family: 4 }] : [{ address: '::1', family: 6 }]
    await using client = createHttpClient({ policy: doorOnly, resolveAll })
    const inside = ['[::1]', '[0:0:0:0:0:0:0:1]', 'inside.example', '169.254.169.254', 'metadata.google.internal']
    for (const host of inside) {
      const location = `http://${host}:${canaryV6.port}/`
      await using door = await startUpstream(
        (_request, response) => void response.writeHead(status, { location }).end(),
      )
      const url = `http://door.example:${door.port}/`
      expect(await reasonOf(client.send({ ...GET, url, redirects: 3 })), host).toBe('EGRESS_BLOCKED')
      expect(door.seen).toHaveLength(1)
    }
    expect(reached).toEqual([])
  })

  it('reaches loopback by every legitimate form once the operator allows it', async () => {
    const policy = createEgressPolicy({ allow: '127.0.0.0/8,::1/128' })
    await using client = hostileNames(policy)
    const urls = [
      `http://127.0.0.1:${canary.port}/literal`,
      `http://localhost:${canary.port}/name`,
      `http://api.example.com:${canary.port}/resolved`,
      `http://[::1]:${canaryV6.port}/v6`,
      `http://[::ffff:127.0.0.1]:${canary.port}/mapped`,
    ]
    for (const url of urls) expect(await reasonOf(client.send({ ...GET, url })), url).toBe('reached')
    expect(reached).toHaveLength(urls.length)
  })

  it('ignores proxies of the environment', async () => {
    const before = { ...process.env }
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) process.env[name] = canary.origin
    process.env.NODE_USE_ENV_PROXY = '1'
    try {
      await using other = await startUpstream((_request, response) => void response.end('direct'))
      await using client = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
      const response = await client.send({ ...GET, url: `${other.origin}/` })
      expect(Buffer.from(response.body).toString()).toBe('direct')
    } finally {
      process.env = before
    }
    expect(reached).toEqual([])
  })
})
