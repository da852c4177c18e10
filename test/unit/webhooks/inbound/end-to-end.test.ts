import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../../../src/foundation/base/index.ts'
import { queryOne } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { expectJson } from '../../../support/rest.ts'
import { type Receiver, startReceiver } from '../../../support/webhook-receiver.ts'

/** Ends the time in which loops poll once an hour. */
const POLLING = new AbortController()
const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
app.startWorker({}, hourlyUntil(POLLING.signal))
const { teamToken, environmentToken } = app.first
const asTeam = (path: string, body: object) => expectJson('POST', `${app.url}${path}`, teamToken, body)
const asEnvironment = (path: string, body: object) => expectJson('POST', `${app.url}${path}`, environmentToken, body)

const SECRET = 'signing-secret-of-the-app'
const CONFIG = {
  label: 'CRM',
  base_url: 'http://127.0.0.1:9',
  credentials: { format: 'api_key', config: { fields: [{ name: 'api_key', type: 'password', required: true }] } },
  resources: { contacts: { list: { method: 'get', path: '/contacts' } } },
  webhook: {
    handle_verification: '{"type": body.kind = "ping" ? "meta" : "payload", "update_context": {"seen": body.kind}}',
    signature_verification: {
      format: 'hmac',
      config: {
        secret: SECRET,
        algorithm: 'sha256',
        string_type: 'hex',
        parts: ['$body'],
        compare_with: '$header.x-signature',
      },
    },
    events: 'body.changes.{"event": action, "resource": "contacts", "id": id, "data": $, "account": team}',
    context_lookup: { value: 'body.team', field: 'team' },
    dedupe: { keys: ['$header.x-delivery'] },
  },
}

/** An installation with two accounts, and two receivers of a customer: of the events of records, and of `meta`. */
async function world(name: string) {
  const [receiver, metaReceiver] = [await startReceiver(), await startReceiver()]
  const integration = await asTeam('/integration', { name, config: CONFIG })
  const installation = await asEnvironment('/environment-integration', { integration_id: integration.id })
  const connect = (tenant_id: string, context: object) =>
    asEnvironment('/integrated-account', {
      environment_integration_id: installation.id,
      tenant_id,
      context,
      credentials: { api_key: 'k' },
    })
  const first = await connect('acme', { team: 'T1' })
  const second = await connect('globex', { team: 'T2' })
  const webhook = await asEnvironment('/webhook', { target_url: receiver.url, event_types: ['record:*'] })
  await asEnvironment('/webhook', { target_url: metaReceiver.url, event_types: ['record:meta'] })
  return { receiver, metaReceiver, secret: String(webhook.secret), installation, first, second }
}

/** Sends what a third party would. */
async function deliver(path: string, delivery: string, body: object, signature?: string): Promise<number> {
  const text = JSON.stringify(body)
  const response = await fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-delivery': delivery,
      'x-signature': signature ?? createHmac('sha256', SECRET).update(text).digest('hex'),
    },
    body: text,
  })
  return response.status
}

/** What received webhooks, events and deliveries still have ahead of them, rows of every queue between them. */
async function countWaiting(): Promise<number> {
  const tables = ['inbound_queue', 'inbound_lease', 'event_dispatch', 'delivery_queue', 'delivery_lease']
  const counts = tables.map((table) => `(select count(*) from ${table})`).join(' + ')
  // One statement sees all of them at one moment.
  const row = await queryOne<{ readonly waiting: string }>(app.database.pool, `select ${counts} as waiting`, {})
  return Number(row?.waiting)
}

/** All events that the receiver gets, verified as its customer would: once nothing waits, none can follow. */
async function receivedEvents(receiver: Receiver, secret: string, count: number) {
  await expect.poll(() => receiver.received.length).toBeGreaterThanOrEqual(count)
  await expect.poll(countWaiting).toBe(0)
  expect(receiver.received.length).toBe(count)
  return receiver.received.map(({ body, headers }) => {
    const event = new Webhook(secret).verify(body, headers as Record<string, string>) as JsonObject
    expect(headers['webhook-id']).toBeTypeOf('string')
    return event as { readonly event: string; readonly payload: JsonObject }
  })
}

/** A clock with which a pause of any length takes an hour, until the signal. */
function hourlyUntil(usual: AbortSignal): Clock {
  return {
    ...systemClock,
    sleep: (ms, signal) =>
      usual.aborted
        ? systemClock.sleep(ms, signal)
        : systemClock.sleep(3_600_000, AbortSignal.any(signal === undefined ? [usual] : [usual, signal])),
  }
}

describe('a worker in the process that receives the webhook', () => {
  it('records arrive one after another although nothing polls', async () => {
    const { receiver, secret, first } = await world('crm-wake')
    for (const n of [1, 2, 3]) {
      const body = { changes: { action: 'created', id: n } }
      expect(await deliver(`/integrated-account-webhook/${first.id}`, `d-${n}`, body)).toBe(200)
      await receivedEvents(receiver, secret, n)
    }
  })
})

describe('from the webhook of a third party to the receiver of a customer', () => {
  beforeAll(() => POLLING.abort())

  it('a record is delivered once, signed, although the third party repeats itself', async () => {
    const { receiver, metaReceiver, secret, first } = await world('crm-account')
    const path = `/integrated-account-webhook/${first.id}`
    const body = { changes: { action: 'created', id: 5, name: 'Ada' } }
    const statuses = await Promise.all([1, 2, 3].map(() => deliver(path, 'd-1', body)))
    expect(statuses).toEqual([200, 200, 200])
    expect(await deliver(path, 'd-2', body, 'forged')).toBe(401)
    expect(await deliver(path, 'd-3', { kind: 'ping', changes: { action: 'created', id: 6 } })).toBe(200)
    expect(await deliver(path, 'd-4', { changes: { action: 'meta', id: 7 } })).toBe(200)
    const events = await receivedEvents(receiver, secret, 1)
    expect(events).toEqual([
      expect.objectContaining({
        event: 'record:created',
        payload: expect.objectContaining({
          integrated_account_id: first.id,
          tenant_id: 'acme',
          resource: 'contacts',
          record_id: '5',
          data: body.changes,
          replay: false,
        }),
      }),
    ])
    expect(metaReceiver.received.map((request) => JSON.parse(request.body))).toEqual([
      expect.objectContaining({ event: 'record:meta', payload: expect.objectContaining({ record_id: '7' }) }),
    ])
    const list = await expectJson('GET', `${app.url}/inbound-event`, environmentToken)
    const listed = list.inbound_events as readonly { readonly id: string; readonly dedupe_key: string }[]
    const ping = listed.find(({ dedupe_key }) => dedupe_key === 'd-3')
    expect(await expectJson('GET', `${app.url}/inbound-event/${ping?.id}`, environmentToken)).toMatchObject({
      state: 'processed',
      items: [],
      trace: {
        handshake: { type: 'meta' },
        mapping: { items: 0, skipped: 'a request of type meta leads to no event' },
      },
    })
    const account = await expectJson('GET', `${app.url}/integrated-account/${first.id}`, environmentToken)
    expect(account.context).toMatchObject({ seen: 'ping' })
  })

  it('a delivery for several accounts is split, and what finds none is listed', async () => {
    const { receiver, secret, installation, first, second } = await world('crm-installation')
    const path = `/environment-integration-webhook/${installation.id}`
    const changes = ['T1', 'T2', 'T3'].map((team, id) => ({ action: 'updated', id, team }))
    expect(await deliver(path, 'd-1', { team: 'T1', changes })).toBe(200)
    const events = await receivedEvents(receiver, secret, 2)
    expect(new Set(events.map(({ payload }) => payload.integrated_account_id))).toEqual(new Set([first.id, second.id]))
    const list = await expectJson('GET', `${app.url}/inbound-event`, environmentToken)
    const [listed] = list.inbound_events as readonly { readonly id: string }[]
    const shown = await expectJson('GET', `${app.url}/inbound-event/${listed?.id}`, environmentToken)
    expect(shown).toMatchObject({ state: 'processed', trace: { routing: { routed: 2, unrouted: 1 } } })
    expect(shown.items).toContainEqual(expect.objectContaining({ state: 'unrouted', lookup_value: 'T3' }))
  })
})
