import { expect, it, vi } from 'vitest'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { TaskService } from '../../gen/patchbay/v1/task_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { appendEvents, examplePayload } from '../../src/platform/outbox/index.ts'
import { startTestApp } from '../support/app.ts'
import { EVENTUALLY } from '../support/eventually.ts'
import { TIME } from '../support/matchers.ts'
import { createApiEnvironment, idOf } from '../support/seeded-tenant.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const {
  createWebhook,
  updateWebhook,
  listWebhookDeliveries: list,
  getWebhookDelivery: get,
  replayWebhookDelivery: replay,
  recoverWebhookDeliveries: recover,
  replayMissingWebhookDeliveries: replayMissing,
} = WebhookService.method

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const { environmentId, environmentToken: token } = await createApiEnvironment(app, app.first.teamToken)
const client = app.client('rest', { token })
const TYPE = 'record:created'
const SINCE = '2020-01-01T00:00:00Z'

/** Records an event, which the worker dispatches. */
async function record(): Promise<string> {
  const id = newId()
  await app.database.transaction((tx) =>
    appendEvents(tx, [{ environmentId, id, type: TYPE, payload: examplePayload(TYPE) }]),
  )
  return id
}

/** The deliveries of an event once there are so many and each has what is expected, newest first. */
async function deliveriesOf(eventId: string, expected: readonly JsonObject[]): Promise<readonly JsonObject[]> {
  return await vi.waitFor(async () => {
    const page = await client.ok(list, { event_id: eventId })
    const found = page.webhook_deliveries as unknown as readonly JsonObject[]
    expect(found).toMatchObject(expected as object[])
    expect(found).toHaveLength(expected.length)
    return found
  }, EVENTUALLY)
}

async function finished(taskId: string): Promise<JsonObject> {
  return await vi.waitFor(async () => {
    const task = await client.ok(TaskService.method.getTask, { id: taskId })
    expect(task).toMatchObject({ state: 'completed' })
    return task
  }, EVENTUALLY)
}

it('shows each attempt as it was, and sends again by a replay, a recovery, and what was never sent', async () => {
  let status = 503
  await using receiver = await startReceiver(() => ({ status, headers: { 'x-answer': 'a' }, body: 'busy' }))
  const webhookId = await idOf(client, createWebhook, { target_url: receiver.url, event_types: [TYPE] })
  app.startWorker()
  const eventId = await record()
  const [refused] = await deliveriesOf(eventId, [{ state: 'pending', attempt_count: 1, last_status: 503 }])
  const detail = await client.ok(get, { id: String(refused?.id) })
  expect(detail).toMatchObject({
    webhook_id: webhookId,
    trigger: 'automatic',
    last_error_class: 'status_5xx',
    next_attempt_at: TIME,
    event: await client.ok(EventService.method.getEvent, { id: eventId }),
    attempts: [
      {
        number: 1,
        scheduled_at: TIME,
        started_at: TIME,
        finished_at: TIME,
        status: 503,
        error_class: 'status_5xx',
        remote_address: '127.0.0.1',
        timings: { connect_ms: expect.any(Number), first_byte_ms: expect.any(Number), total_ms: expect.any(Number) },
        request_headers: expect.arrayContaining([{ name: 'webhook-id', value: eventId }]),
        response_headers: expect.arrayContaining([{ name: 'x-answer', value: 'a' }]),
        response_body: 'busy',
      },
    ],
  })

  status = 204
  await client.ok(replay, { id: String(refused?.id) })
  await deliveriesOf(eventId, [{ trigger: 'replay', state: 'delivered' }, { trigger: 'automatic' }])

  const failed = await record()
  const [ended] = await deliveriesOf(failed, [{ state: 'delivered' }])
  await execute(app.database.pool, `update delivery set state = 'failed' where id = :id`, { id: String(ended?.id) })
  const recovery = await client.ok(recover, { id: webhookId, since: SINCE })
  expect(await finished(recovery.id)).toMatchObject({ kind: 'recover_deliveries', result: { deliveries: 1 } })
  await deliveriesOf(failed, [{ trigger: 'recovery', state: 'delivered' }, { trigger: 'automatic' }])

  await client.ok(updateWebhook, { id: webhookId, is_active: false })
  const unsent = await record()
  await vi.waitFor(async () => {
    const { rows } = await app.database.pool.raw('select from event_dispatch')
    expect(rows).toEqual([])
  }, EVENTUALLY)
  await client.ok(updateWebhook, { id: webhookId, is_active: true })
  const missing = await client.ok(replayMissing, { id: webhookId, since: SINCE })
  expect(await finished(missing.id)).toMatchObject({ kind: 'replay_missing_deliveries', result: { deliveries: 1 } })
  await deliveriesOf(unsent, [{ trigger: 'missing', state: 'delivered' }])

  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids)).toEqual(new Set([eventId, failed, unsent]))
})
