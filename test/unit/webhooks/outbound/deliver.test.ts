import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, it } from 'vitest'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { deliver, encodeEvent, encodeEventWithList } from '../../../../src/webhooks/outbound/index.ts'
import { newSigningSecret } from '../../../../src/webhooks/outbound/signing.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { type ReceiverResponse, startReceiver } from '../../../support/webhook-receiver.ts'
import { webhookTarget } from '../../../support/webhook-target.ts'

const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
afterAll(() => http[Symbol.asyncDispose]())

const secret = newSigningSecret()
const event = {
  id: 'evt_a_1',
  event: 'sync_job_run:record',
  payload: { resource: 'issues', title: 'Größe' },
  createdAt: new Date('2026-05-04T03:02:01.000Z'),
}

function targetAt(url: string) {
  return webhookTarget(url, { webhookId: 'w-1', environmentId: 'e-1', secrets: [secret] })
}

async function deliverTo(url: string, signal = new AbortController().signal) {
  const clock = fastClock()
  const target = targetAt(url)
  const delivery = await deliver({ http, clock, random: () => 0 }, target, encodeEvent(target, event), signal)
  return { delivery, sleptMs: clock.sleptMs }
}

describe('a delivery', () => {
  it('is verified by the standardwebhooks library over the bytes that arrived', async () => {
    await using receiver = await startReceiver()
    const { delivery } = await deliverTo(receiver.url)
    expect(delivery).toEqual({ kind: 'accepted', status: 204, attempts: 1 })
    const [{ headers, body }] = receiver.received as [(typeof receiver.received)[number]]
    expect(headers['content-type']).toBe('application/json')
    expect(headers['webhook-id']).toBe('evt_a_1')
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual({
      id: 'evt_a_1',
      event: 'sync_job_run:record',
      payload: { resource: 'issues', title: 'Größe' },
      environment_id: 'e-1',
      webhook_id: 'w-1',
      created_at: '2026-05-04T03:02:01.000Z',
    })
  })

  it('carries a list of ready-made JSON texts beside the rest of the payload', () => {
    const { body } = encodeEventWithList(targetAt('http://x'), event, 'records', ['{"id":0}', '"text"'])
    expect(JSON.parse(Buffer.from(body).toString()).payload).toEqual({
      ...event.payload,
      records: [{ id: 0 }, 'text'],
    })
    const bare = encodeEventWithList(targetAt('http://x'), { ...event, payload: {} }, 'records', [])
    expect(JSON.parse(Buffer.from(bare.body).toString()).payload).toEqual({ records: [] })
  })

  it('larger than one chunk arrives whole and verifies', async () => {
    await using receiver = await startReceiver()
    const target = targetAt(receiver.url)
    const items = Array.from({ length: 400 }, (_, id) => JSON.stringify({ id, text: 'x'.repeat(500) }))
    const message = encodeEventWithList(target, event, 'records', items)
    await deliver({ http, clock: fastClock(), random: () => 0 }, target, message, new AbortController().signal)
    const [{ headers, body }] = receiver.received as [(typeof receiver.received)[number]]
    new Webhook(secret).verify(body, headers as Record<string, string>)
    expect(JSON.parse(body).payload.records).toHaveLength(400)
  })

  it.each<{ name: string; answers: ReceiverResponse[]; kind: string; attempts: number; sleptMs: number[] }>([
    { name: 'a passing 503', answers: [{ status: 503 }], kind: 'accepted', attempts: 2, sleptMs: [250] },
    { name: 'a dropped connection', answers: ['hang-up'], kind: 'accepted', attempts: 2, sleptMs: [250] },
    {
      name: 'Retry-After in seconds',
      answers: [{ status: 429, headers: { 'retry-after': '2.5' } }],
      kind: 'accepted',
      attempts: 2,
      sleptMs: [2500],
    },
    {
      name: 'a Retry-After too long to sit out',
      answers: [{ status: 429, headers: { 'retry-after': '120' } }],
      kind: 'rejected',
      attempts: 1,
      sleptMs: [],
    },
    {
      name: 'an outage, four times at most',
      answers: Array(9).fill({ status: 502 }),
      kind: 'rejected',
      attempts: 4,
      sleptMs: [250, 750, 2250],
    },
    { name: 'a 400, once', answers: [{ status: 400 }], kind: 'rejected', attempts: 1, sleptMs: [] },
    { name: 'a 410, once', answers: [{ status: 410 }], kind: 'rejected', attempts: 1, sleptMs: [] },
  ])('meets $name', async ({ answers, kind, attempts, sleptMs }) => {
    await using receiver = await startReceiver((_, index) => answers[index] ?? { status: 200 })
    const result = await deliverTo(receiver.url)
    expect(result.delivery).toMatchObject({ kind, attempts })
    expect(result.sleptMs).toEqual(sleptMs)
    expect(receiver.received).toHaveLength(attempts)
    expect(new Set(receiver.received.map(({ headers, body }) => `${headers['webhook-id']} ${body}`)).size).toBe(1)
  })

  it('tells how long Retry-After as an HTTP date asks to wait', async () => {
    const later = new Date(Date.now() + 3_600_000).toUTCString()
    await using receiver = await startReceiver(() => ({ status: 503, headers: { 'retry-after': later } }))
    const { delivery } = await deliverTo(receiver.url)
    expect(delivery.kind === 'rejected' && delivery.retryAfterMs).toBeGreaterThan(3_590_000)
  })

  it('does not follow a redirect', async () => {
    await using elsewhere = await startReceiver()
    await using receiver = await startReceiver(() => ({ status: 307, headers: { location: elsewhere.url } }))
    const { delivery } = await deliverTo(receiver.url)
    expect(delivery).toMatchObject({ kind: 'rejected', status: 307, attempts: 1 })
    expect(elsewhere.received).toHaveLength(0)
  })

  it('is accepted with a long response', async () => {
    const long = 'y'.repeat(200_000)
    await using accepting = await startReceiver(() => ({ status: 200, body: long }))
    expect((await deliverTo(accepting.url)).delivery).toEqual({ kind: 'accepted', status: 200, attempts: 1 })
  })

  it('to an address that may not be called is tried once and says so', async () => {
    const { delivery, sleptMs } = await deliverTo('http://10.0.0.1/hook')
    expect(delivery).toMatchObject({ kind: 'no_response', reason: 'EGRESS_BLOCKED', attempts: 1 })
    expect(sleptMs).toEqual([])
  })

  it('ends with an error when it is cancelled in mid-attempt', async () => {
    const controller = new AbortController()
    await using receiver = await startReceiver(() => {
      controller.abort()
      return { status: 200 }
    })
    await expect(deliverTo(receiver.url, controller.signal)).rejects.toThrow()
    expect(receiver.received).toHaveLength(1)
  })
})
