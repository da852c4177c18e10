import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { checkConfig } from '../../../../src/engine/definitions/index.ts'
import type { AttemptOutcome } from '../../../support/provider-doubles/delivery.ts'
import { ProviderDouble } from '../../../support/provider-doubles/double.ts'
import { type HealthPolicy, ReceiverHealth, type Verdict } from '../../../support/provider-doubles/health.ts'
import { PROFILES, shopify, slack, x, zoom } from '../../../support/provider-doubles/profiles.ts'

/** A minute is 10 ms here. */
const CLOCK = { minute: 10, hour: 600, day: 2_000 }
const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each[Symbol.asyncDispose]()
})

type Serve = (body: string, response: ServerResponse, request: IncomingMessage) => void

/** A receiver, and a double that may be told its address. */
async function startPair(make: (typeof PROFILES)[number], serve: Serve, overrides: object = {}) {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body)
      serve(body, response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const profile = make(CLOCK)
  const double = await ProviderDouble.start({
    ...profile,
    ...overrides,
    policy: { ...profile.policy, duplicateShare: 0 },
  })
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  open.push(double, { [Symbol.asyncDispose]: close })
  return { double, bodies, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` }
}

async function order(double: ProviderDouble, address: string): Promise<void> {
  const response = await fetch(`${double.url}/hooks`, { method: 'POST', body: JSON.stringify({ address }) })
  expect(response.status).toBe(201)
}

const ITEM = [{ id: '1', account: 'a' }]

describe('a double of a provider', () => {
  it.each(PROFILES.map((make) => make(CLOCK)))('$name has a definition without findings', async (profile) => {
    await using double = await ProviderDouble.start(profile)
    expect(checkConfig(double.definition(), 'integration', 'config')).toEqual([])
  })

  it('retries while the first request still runs, and counts a late answer as none', async () => {
    const running: ServerResponse[] = []
    const { double, bodies, address } = await startPair(
      slack,
      (body, response) => {
        if (body.includes('challenge')) response.end(JSON.parse(body).challenge)
        else if (running.push(response) > 1) response.end()
      },
      {},
    )
    Object.assign(double.profile.policy, { deadlineMs: 500 })
    double.emit(await double.register(address), ITEM)
    await double.settled()
    expect(bodies).toHaveLength(3)
    expect(double.emitted).toMatchObject([{ isLost: false }])
    expect(running[0]?.writableEnded).toBe(false)
    running[0]?.end()
  })

  it('of Shopify deletes a subscription after eight failures in a row, and what was not accepted is lost', async () => {
    const { double, address } = await startPair(shopify, (_body, response) => response.writeHead(500).end())
    await order(double, address)
    const [subscription] = double.active
    if (subscription === undefined) throw new Error('no subscription')
    double.emit(subscription, ITEM)
    await double.settled()
    expect(double.disabled).toMatchObject([{ provider: 'shopify' }])
    expect(double.emitted).toMatchObject([{ isLost: true }])
    expect(double.active).toEqual([])
  })

  it.each([
    ['zoom', zoom],
    ['x', x],
  ])('of %s disables an address whose repeated validation fails', async (_name, make) => {
    const { double, address } = await startPair(make, (_body, response) => response.writeHead(500).end())
    await expect(double.register(address)).rejects.toThrow('failed its handshake')
  })

  it('creates no subscription when the handshake within the create call fails', async () => {
    const [make] = PROFILES.filter((each) => each(CLOCK).name === 'graph')
    if (make === undefined) throw new Error('no profile')
    const { double, address } = await startPair(make, (_body, response) => response.end('something else'))
    const response = await fetch(`${double.url}/hooks`, { method: 'POST', body: JSON.stringify({ address }) })
    expect(response.status).toBe(400)
  })

  it('ends a subscription that is not renewed', async () => {
    const { double, address } = await startPair(shopify, (_body, response) => response.end(), { lifeMs: 0 })
    await order(double, address)
    expect(double.active).toEqual([])
  })
})

describe('the health of a receiver', () => {
  const outcome = (status: number, tookMs = 1): AttemptOutcome => ({ status, tookMs, headers: undefined, body: '' })
  const OK = outcome(200)
  const BAD = outcome(500)

  it.each<[string, HealthPolicy, readonly AttemptOutcome[], Verdict]>([
    ['seven failures of a delivery', { kind: 'exhausted', failures: 8 }, Array(7).fill(BAD), 'healthy'],
    ['eight failures of a delivery', { kind: 'exhausted', failures: 8 }, Array(8).fill(BAD), 'disabled'],
    [
      'a fifth of slow answers',
      { kind: 'slow', slowMs: 10, dropShare: 0.15, windowMs: 1_000, attemptsMin: 5 },
      [OK, OK, OK, OK, outcome(200, 20)],
      'dropping',
    ],
    [
      'failures alone, but few',
      { kind: 'share', share: 0.95, windowMs: 1_000, attemptsMin: 10 },
      Array(9).fill(BAD),
      'healthy',
    ],
    [
      'failures alone',
      { kind: 'share', share: 0.95, windowMs: 1_000, attemptsMin: 10 },
      Array(10).fill(BAD),
      'disabled',
    ],
  ])('after %s', (_what, policy, outcomes, verdict) => {
    const health = new ReceiverHealth(policy)
    expect(outcomes.map((each, index) => health.note(each, index + 1, 0)).at(-1)).toBe(verdict)
  })

  it('that has failed for as long as Asana waits is bad', () => {
    const health = new ReceiverHealth({ kind: 'duration', failingMs: 100 })
    expect([health.note(BAD, 1, 0), health.note(BAD, 1, 99), health.note(BAD, 1, 100)]).toEqual([
      'healthy',
      'healthy',
      'disabled',
    ])
  })
})
