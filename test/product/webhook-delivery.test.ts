import { describe, expect, it } from 'vitest'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { lowestIdAt, newId } from '../../src/foundation/base/index.ts'
import { execute, jsonb } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { appendEvents, type EventType, examplePayload } from '../../src/platform/outbox/index.ts'
import type { DeliveryState } from '../../src/webhooks/outbound/delivery.ts'
import { enqueueDeliveries } from '../../src/webhooks/outbound/sql/delivery.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import type { Client } from '../support/client.ts'
import { TIME, UUID } from '../support/matchers.ts'
import { createApiEnvironment, idOf } from '../support/seeded-tenant.ts'

const {
  createWebhook,
  updateWebhook,
  deleteWebhook,
  listWebhookDeliveries: list,
  getWebhookDelivery: get,
  replayWebhookDelivery: replay,
  recoverWebhookDeliveries: recover,
} = WebhookService.method
const { expungeEvent: expunge, getEvent } = EventService.method

const app = await startTestApp()
const clients = app.clients()
const { database } = app
const { pool } = database

/** An environment with two webhooks, whose deliveries a test makes. */
async function freshEnvironment() {
  const { environmentId, environmentToken: token } = await createApiEnvironment(app, app.first.teamToken)
  const client = app.client('connect', { token })
  const make = () => idOf(client, createWebhook, { target_url: 'https://app.example.com/hook' })
  return { environmentId, token, webhookId: await make(), otherWebhookId: await make() }
}

type Environment = Awaited<ReturnType<typeof freshEnvironment>>

interface Given {
  readonly type?: EventType
  readonly webhookId?: string
  readonly accountId?: string
  readonly state?: DeliveryState
}

/** A delivery of a new event. */
async function deliver({ environmentId, webhookId }: Environment, given: Given = {}) {
  const { type = 'integrated_account:active', accountId, state = 'pending' } = given
  const eventId = newId()
  const event = { environmentId, id: eventId, type, payload: examplePayload(type), integratedAccountId: accountId }
  await database.transaction((tx) => appendEvents(tx, [event]))
  const item = { environmentId, webhookId: given.webhookId ?? webhookId, eventId, trigger: 'automatic' as const }
  const [id = ''] = await database.transaction((tx) => enqueueDeliveries(tx, [item]))
  if (state !== 'pending') {
    await execute(pool, 'delete from delivery_queue where delivery_id = :id', { id })
    const ended = `update delivery set state = :state, attempts = 1, finished_at = now(), next_attempt_at = null
      where environment_id = :environmentId and id = :id`
    await execute(pool, ended, { state, environmentId, id })
  }
  return { id, eventId }
}

async function addAttempt(environmentId: string, deliveryId: string, n: number, row: JsonObject): Promise<void> {
  await execute(
    pool,
    `insert into delivery_attempt select * from jsonb_populate_record(null::delivery_attempt, :row::jsonb)`,
    { row: jsonb({ environment_id: environmentId, delivery_id: deliveryId, n, ...row }) },
  )
}

const idsIn = (answer: JsonObject) => (answer.webhook_deliveries as readonly JsonObject[]).map(({ id }) => String(id))

async function idsOf(client: Client, token: string, filter: JsonObject): Promise<readonly string[]> {
  return idsIn(await client.ok(list, filter, { token }))
}

describe.each(inTurn(clients))('deliveries over $wire', (client) => {
  it('show what became of them, with the attempts and the event in the detail', async () => {
    const environment = await freshEnvironment()
    const { environmentId, token, webhookId } = environment
    const accountId = newId()
    const { id, eventId } = await deliver(environment, { accountId })
    const shown = {
      id,
      environment_id: environmentId,
      event_id: eventId,
      event_type: 'integrated_account:active',
      webhook_id: webhookId,
      integrated_account_id: accountId,
      state: 'pending',
      trigger: 'automatic',
      attempt_count: 0,
      attempt_count_max: 10,
      next_attempt_at: TIME,
      created_at: TIME,
      attempts: [],
    }
    const [listed] = (await client.ok(list, {}, { token })).webhook_deliveries as unknown as readonly JsonObject[]
    expect(listed).toEqual(shown)
    await addAttempt(environmentId, id, 1, {
      scheduled_at: '2026-01-02T03:04:05Z',
      started_at: '2026-01-02T03:04:06Z',
      connect_ms: 1.5,
      total_ms: 250,
      status: 503,
      error_class: 'status_5xx',
      error_message: 'the receiver answers 503',
      remote_address: '192.0.2.1',
      request_headers: [['authorization', '***']],
      response_headers: [['server', 'x']],
      response_body: 'busy',
    })
    expect(await client.ok(get, { id }, { token })).toEqual({
      ...shown,
      event: await client.ok(getEvent, { id: eventId }, { token }),
      attempts: [
        {
          number: 1,
          scheduled_at: '2026-01-02T03:04:05.000Z',
          started_at: '2026-01-02T03:04:06.000Z',
          finished_at: '2026-01-02T03:04:06.250Z',
          timings: { connect_ms: 1.5, total_ms: 250 },
          status: 503,
          error_class: 'status_5xx',
          error_message: 'the receiver answers 503',
          remote_address: '192.0.2.1',
          request_headers: [{ name: 'authorization', value: '***' }],
          response_headers: [{ name: 'server', value: 'x' }],
          response_body: 'busy',
        },
      ],
    })
  })

  it('can be filtered by each facet and by several, counted, and paged', async () => {
    const environment = await freshEnvironment()
    const { token, webhookId, otherWebhookId } = environment
    const accountId = newId()
    const pending = await deliver(environment, { accountId })
    const failed = await deliver(environment, { state: 'failed', webhookId: otherWebhookId })
    const delivered = await deliver(environment, { state: 'delivered', type: 'record:created', accountId })
    const filters: readonly (readonly [JsonObject, readonly string[]])[] = [
      [{}, [delivered.id, failed.id, pending.id]],
      [{ state: 'pending' }, [pending.id]],
      [{ state: 'failed' }, [failed.id]],
      [{ state: 'delivered' }, [delivered.id]],
      [{ event_type: 'record:created' }, [delivered.id]],
      [{ webhook_id: webhookId }, [delivered.id, pending.id]],
      [{ integrated_account_id: accountId }, [delivered.id, pending.id]],
      [{ integrated_account_id: accountId, state: 'pending' }, [pending.id]],
      [{ event_id: failed.eventId }, [failed.id]],
      [{ since: '2020-01-01T00:00:00Z' }, [delivered.id, failed.id, pending.id]],
      [{ until: '2020-01-01T00:00:00Z' }, []],
    ]
    for (const [filter, ids] of filters) expect(await idsOf(client, token, filter)).toEqual(ids)
    const first = await client.ok(list, { page_size: 2 }, { token })
    expect(await idsOf(client, token, { page_token: first.next_page_token ?? '' })).toEqual([pending.id])
    const moved = { state: 'failed', page_token: first.next_page_token ?? '' }
    expect((await client.callError(list, moved, { token })).reason).toBe('PAGE_TOKEN_INVALID')
    const { counts } = await client.ok(list, { webhook_id: webhookId, include_counts: true }, { token })
    expect(counts).toEqual({
      total: 2,
      is_complete: true,
      states: expect.arrayContaining([
        { value: 'pending', count: 1 },
        { value: 'delivered', count: 1 },
      ]),
      event_types: expect.arrayContaining([{ value: 'record:created', count: 1 }]),
      webhook_ids: [{ value: webhookId, count: 2 }],
    })
  })

  it('reject filters that make no sense, naming the field', async () => {
    const { token } = await freshEnvironment()
    const day = '2026-01-02T00:00:00Z'
    const bad: readonly (readonly [JsonObject, string])[] = [
      [{ state: 'lost' }, 'state'],
      [{ event_type: 'x' }, 'event_type'],
      [{ webhook_id: 'x' }, 'webhook_id'],
      [{ since: day, until: day }, 'until'],
      [{ page_size: -1 }, 'page_size'],
    ]
    for (const [filter, field] of bad)
      expect((await client.callError(list, filter, { token })).violations).toMatchObject([{ field }])
    for (const method of [get, replay])
      expect((await client.callError(method, { id: newId() }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('are sent again by a replay, once per request_id, while the webhook is active', async () => {
    const environment = await freshEnvironment()
    const { token, webhookId, otherWebhookId } = environment
    const { id, eventId } = await deliver(environment, { state: 'delivered' })
    const request = { id, request_id: newId() }
    const again = await client.ok(replay, request, { token })
    expect(again).toMatchObject({
      id: UUID,
      event_id: eventId,
      webhook_id: webhookId,
      trigger: 'replay',
      state: 'pending',
    })
    expect(await client.ok(replay, request, { token })).toEqual(again)
    expect(await idsOf(client, token, { event_id: eventId })).toEqual([again.id, id])

    await client.ok(updateWebhook, { id: webhookId, is_active: false }, { token })
    expect((await client.callError(replay, { id }, { token })).reason).toBe('WEBHOOK_INACTIVE')
    expect((await client.callError(recover, { id: webhookId, since: '2026-01-01T00:00:00Z' }, { token })).reason).toBe(
      'WEBHOOK_INACTIVE',
    )
    const gone = await deliver(environment, { state: 'failed', webhookId: otherWebhookId })
    await client.ok(deleteWebhook, { id: otherWebhookId }, { token })
    expect((await client.callError(replay, { id: gone.id }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('lose their content with that of their event, and keep their rows', async () => {
    const environment = await freshEnvironment()
    const { environmentId, token } = environment
    const { id, eventId } = await deliver(environment)
    const times = { scheduled_at: '2026-01-02T03:04:05Z', started_at: '2026-01-02T03:04:06Z', total_ms: 1 }
    const answer = { response_headers: [['x', 'secret']], response_body: 'secret', request_headers: [] }
    await addAttempt(environmentId, id, 1, { ...times, ...answer, status: 500 })
    const expunged = await client.ok(expunge, { id: eventId }, { token })
    expect(expunged).toMatchObject({ id: eventId, payload: {}, expunged_at: TIME })
    expect(await client.ok(expunge, { id: eventId }, { token })).toEqual(expunged)

    const detail = await client.ok(get, { id }, { token })
    expect(detail).toMatchObject({ state: 'discarded', last_error_class: 'event_expunged', event: expunged })
    expect(detail.attempts).toMatchObject([{ number: 1, status: 500, response_headers: [] }])
    expect(JSON.stringify(detail)).not.toContain('secret')
    expect((await client.callError(replay, { id }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
    expect((await client.callError(expunge, { id: newId() }, { token })).reason).toBe('RESOURCE_NOT_FOUND')
  })
})

it('finds ids by their time: the smallest id of a moment is below those made then', () => {
  const now = Date.now()
  expect(lowestIdAt(new Date(now)) < newId(now)).toBe(true)
  expect(lowestIdAt(new Date(now + 1)) > newId(now)).toBe(true)
})
