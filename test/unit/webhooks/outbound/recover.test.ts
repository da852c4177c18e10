import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { createTaskRunner, getTask } from '../../../../src/foundation/queue/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { appendEvents, type EventType, examplePayload } from '../../../../src/platform/outbox/index.ts'
import type { DeliveryState, DeliveryTrigger } from '../../../../src/webhooks/outbound/delivery.ts'
import { DELIVERY_TASKS, expungeEvent, replayDelivery, startRecovery } from '../../../../src/webhooks/outbound/index.ts'
import { enqueueDeliveries } from '../../../../src/webhooks/outbound/sql/delivery.ts'
import { testDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'

const { database } = await testDatabase()
const { pool } = database
const runner = createTaskRunner({ database, random: () => 0.5, logger: silentLogger }, DELIVERY_TASKS)
const clock = { now: () => new Date() }
const LONG_AGO = new Date('2020-01-01T00:00:00Z')

interface Webhook {
  readonly environmentId: string
  readonly webhookId: string
}

/** An event that was dispatched to no webhook. */
async function eventOf(
  { environmentId }: Webhook,
  given: { type?: EventType; id?: string; except?: string; isTest?: boolean } = {},
) {
  const { type = 'integrated_account:active', id = newId(), except: exceptWebhookId, isTest } = given
  await database.transaction((tx) =>
    appendEvents(tx, [{ environmentId, id, type, payload: examplePayload(type), exceptWebhookId, isTest }]),
  )
  await execute(pool, 'delete from event_dispatch where event_id = :id', { id })
  return id
}

/** A delivery that has ended in this state. */
async function deliver(
  { environmentId, webhookId }: Webhook,
  eventId: string,
  state: DeliveryState,
  trigger: DeliveryTrigger = 'automatic',
): Promise<string> {
  const [id = ''] = await database.transaction((tx) =>
    enqueueDeliveries(tx, [{ environmentId, webhookId, eventId, trigger }]),
  )
  if (state === 'pending') return id
  await execute(pool, 'delete from delivery_queue where delivery_id = :id', { id })
  const sql = 'update delivery set state = :state, finished_at = now(), next_attempt_at = null where id = :id'
  await execute(pool, sql, { state, id })
  return id
}

/** Runs a recovery to its end; the events that got a delivery by it, in the order of the deliveries. */
async function recover(
  { environmentId, webhookId }: Webhook,
  what: 'recover' | 'missing',
  since = LONG_AGO,
  until?: Date,
) {
  const { id } = await database.transaction((tx) =>
    startRecovery({ clock }, tx, environmentId, webhookId, what, { since, until }),
  )
  while (await runner.runOnce());
  const task = await getTask(pool, environmentId, id)
  const made = await query<{ readonly eventId: string }>(
    pool,
    `select event_id as "eventId" from delivery where webhook_id = :webhookId and trigger = :trigger
       and created_at >= :since order by id`,
    { webhookId, trigger: what === 'recover' ? 'recovery' : 'missing', since: task.createdAt },
  )
  return { task, eventIds: made.map(({ eventId }) => eventId) }
}

/** So that the ids of what follows have a later millisecond: ranges end at `now`. */
async function nextMillisecond(): Promise<Date> {
  const from = Date.now()
  while (Date.now() <= from) await Promise.resolve()
  return new Date()
}

describe('recovering what a webhook did not get', () => {
  it('sends failed and discarded ones again, oldest first, and nothing else', async () => {
    const tenant = await createTenant(database)
    const events = [await eventOf(tenant), await eventOf(tenant), await eventOf(tenant), await eventOf(tenant)]
    const [failed = '', delivered = '', discarded = '', pending = ''] = events
    await deliver(tenant, failed, 'failed')
    await deliver(tenant, delivered, 'delivered')
    await deliver(tenant, discarded, 'discarded')
    await deliver(tenant, pending, 'pending')
    await nextMillisecond()
    const { task, eventIds } = await recover(tenant, 'recover')
    expect(eventIds).toEqual([failed, discarded])
    expect(task).toMatchObject({ state: 'completed', done: 4, total: 4, result: { deliveries: 2 } })
    expect((await recover(tenant, 'recover')).task.result).toEqual({ deliveries: 0 })
  })

  it('leaves out an event with a later delivery, whatever became of it, and sends one of two failed ones', async () => {
    const tenant = await createTenant(database)
    const [replayed, twice] = [await eventOf(tenant), await eventOf(tenant)]
    await deliver(tenant, replayed, 'failed')
    await deliver(tenant, replayed, 'delivered')
    await deliver(tenant, twice, 'failed')
    await deliver(tenant, twice, 'failed')
    await nextMillisecond()
    expect((await recover(tenant, 'recover')).eventIds).toEqual([twice])
  })

  it('keeps to its range, its webhook and events that have content', async () => {
    const [tenant, other] = [await createTenant(database), await createTenant(database)]
    const before = await eventOf(tenant)
    await deliver(tenant, before, 'failed')
    await deliver(other, await eventOf(other), 'failed')
    const since = await nextMillisecond()
    const [within, expunged] = [await eventOf(tenant), await eventOf(tenant)]
    await deliver(tenant, within, 'failed')
    await deliver(tenant, expunged, 'failed')
    await expungeEvent(pool, tenant.environmentId, expunged)
    const until = await nextMillisecond()
    await deliver(tenant, await eventOf(tenant), 'failed')
    expect((await recover(tenant, 'recover', since, until)).eventIds).toEqual([within])
  })

  it('leaves out tests, which a replay sends as tests again', async () => {
    const tenant = await createTenant(database)
    const id = await deliver(tenant, await eventOf(tenant, { isTest: true }), 'failed', 'test')
    await nextMillisecond()
    expect((await recover(tenant, 'recover')).eventIds).toEqual([])
    expect(await database.transaction((tx) => replayDelivery(tx, tenant.environmentId, id))).toMatchObject({
      trigger: 'test',
    })
    const other = { ...tenant, webhookId: newId() }
    await execute(
      pool,
      `insert into webhook (environment_id, id, target_url, event_types, is_active)
       values (:environmentId, :webhookId, 'https://other.example/', '{}', true)`,
      { environmentId: other.environmentId, webhookId: other.webhookId },
    )
    expect((await recover(other, 'missing')).eventIds).toEqual([])
  })

  it('takes thousands step by step', async () => {
    const tenant = await createTenant(database)
    const ids = Array.from({ length: 2_500 }, () => newId())
    const { environmentId, webhookId } = tenant
    const type = 'integrated_account:active'
    await database.transaction((tx) =>
      appendEvents(
        tx,
        ids.map((id) => ({ environmentId, id, type, payload: examplePayload(type) })),
      ),
    )
    await database.transaction((tx) =>
      enqueueDeliveries(
        tx,
        ids.map((eventId) => ({ environmentId, webhookId, eventId, trigger: 'automatic' })),
      ),
    )
    await execute(
      pool,
      `update delivery set state = 'failed', finished_at = now() where environment_id = :environmentId`,
      { environmentId },
    )
    await nextMillisecond()
    const { task, eventIds } = await recover(tenant, 'recover')
    expect(eventIds).toEqual(ids)
    expect(task).toMatchObject({ state: 'completed', done: 2_500, total: 2_500, result: { deliveries: 2_500 } })
  })
})

describe('sending what a webhook was never sent', () => {
  it('takes the events that it asks for, by type and filter, and has no delivery of', async () => {
    const tenant = await createTenant(database)
    const { environmentId, webhookId } = tenant
    const filter = `{"type": {"$neq": "record:deleted"}}`
    const narrowed = `update webhook set event_types = '{record:*,api_token:created}', filter = :filter::jsonb
      where environment_id = :environmentId and id = :webhookId`
    await execute(pool, narrowed, { environmentId, webhookId, filter })
    const missing = await eventOf(tenant, { type: 'record:created' })
    await eventOf(tenant, { type: 'integrated_account:active' })
    await eventOf(tenant, { type: 'record:deleted' })
    await deliver(tenant, await eventOf(tenant, { type: 'record:updated' }), 'failed')
    const missingToo = await eventOf(tenant, { type: 'api_token:created' })
    await nextMillisecond()
    const { task, eventIds } = await recover(tenant, 'missing')
    expect(eventIds).toEqual([missing, missingToo])
    expect(task).toMatchObject({ state: 'completed', result: { deliveries: 2 } })
    expect(task.done).toBeGreaterThanOrEqual(5)
    expect((await recover(tenant, 'missing')).eventIds).toEqual([])
  })

  it('leaves out events that wait for their dispatch, that the run sends itself, and that have no content', async () => {
    const tenant = await createTenant(database)
    const { environmentId, webhookId } = tenant
    const type = 'sync_job_run:completed'
    await database.transaction((tx) => appendEvents(tx, [{ environmentId, type, payload: examplePayload(type) }]))
    await eventOf(tenant, { type, except: webhookId })
    await expungeEvent(pool, environmentId, await eventOf(tenant, { type }))
    const missing = await eventOf(tenant, { type, except: newId() })
    await nextMillisecond()
    const { eventIds } = await recover(tenant, 'missing')
    expect(eventIds).toContain(missing)
    expect(eventIds.filter((id) => id !== missing)).toEqual([])
  })

  it('fails when the webhook is turned off meanwhile, and is not started then', async () => {
    const { environmentId, webhookId } = await createTenant(database)
    const range = { since: LONG_AGO }
    const { id } = await database.transaction((tx) =>
      startRecovery({ clock }, tx, environmentId, webhookId, 'missing', range),
    )
    await execute(pool, 'update webhook set is_active = false where id = :webhookId', { webhookId })
    while (await runner.runOnce());
    expect(await getTask(pool, environmentId, id)).toMatchObject({
      state: 'failed',
      error: expect.stringContaining('off'),
    })
    const again = database.transaction((tx) => startRecovery({ clock }, tx, environmentId, webhookId, 'missing', range))
    await expect(again).rejects.toMatchObject({ reason: 'WEBHOOK_INACTIVE' })
  })
})
