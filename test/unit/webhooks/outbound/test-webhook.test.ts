import { expect, it } from 'vitest'
import { EventService } from '../../../../gen/patchbay/v1/event_service_pb.ts'
import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { EVENT_TYPES } from '../../../../src/platform/outbox/index.ts'
import { startTestApp } from '../../../support/app.ts'
import type { Client } from '../../../support/client.ts'
import { UUID } from '../../../support/matchers.ts'

const { createWebhook, updateWebhook, testWebhook, getWebhookDelivery } = WebhookService.method
const { listEvents } = EventService.method

const app = await startTestApp()
const [client] = app.clients() as [Client]
const make = (fields = {}) =>
  client.ok(createWebhook, { target_url: 'https://app.example.com/hook', event_types: ['record:deleted'], ...fields })

it('makes one delivery of an example that says test, of every event, and dispatches it to no webhook', async () => {
  const { id } = await make({ filter: { 'payload.tenant_id': 'none' } })
  await make({ event_types: [] })
  await execute(app.database.pool, 'delete from event_dispatch')
  for (const event_type of EVENT_TYPES) {
    const delivery = await client.ok(testWebhook, { id, event_type })
    expect(delivery).toMatchObject({ id: UUID, webhook_id: id, event_type, trigger: 'test', state: 'pending' })
    const { event } = (await client.ok(getWebhookDelivery, { id: delivery.id })) as { event?: object }
    expect(event).toMatchObject({ type: event_type, test: true })
  }
  expect(await query(app.database.pool, 'select 1 from event_dispatch')).toEqual([])
  const { events } = await client.ok(listEvents, { types: ['record:meta'] })
  expect(events).toEqual([expect.objectContaining({ test: true })])
})

it('without a type is integrated_account:created, and repeats its answer for the same request_id', async () => {
  const { id } = await make()
  const request = { id, request_id: '019a0000-0000-4000-8000-000000000001' }
  const first = await client.ok(testWebhook, request)
  expect(first).toMatchObject({ event_type: 'integrated_account:created' })
  expect(await client.ok(testWebhook, request)).toEqual(first)
})

it('is rejected for an unknown event, an unknown webhook and one that is paused', async () => {
  const { id } = await make()
  const unknown = await client.callError(testWebhook, { id, event_type: 'record:invented' })
  expect(unknown).toMatchObject({ code: 'INVALID_ARGUMENT', violations: [{ field: 'event_type' }] })
  const missing = await client.callError(testWebhook, { id: '019a0000-0000-7000-8000-000000000001' })
  expect(missing.reason).toBe('RESOURCE_NOT_FOUND')
  await client.ok(updateWebhook, { id, is_active: false })
  expect((await client.callError(testWebhook, { id })).reason).toBe('WEBHOOK_INACTIVE')
})
