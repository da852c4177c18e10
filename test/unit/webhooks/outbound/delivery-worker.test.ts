import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { HOUR_MS, newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { examplePayload } from '../../../../src/platform/outbox/index.ts'
import { sendDelivery } from '../../../../src/webhooks/outbound/send.ts'
import { enqueueDeliveries } from '../../../../src/webhooks/outbound/sql/delivery.ts'
import { clockedDatabase, testDatabase } from '../../../support/database.ts'
import { seedEnvironment } from '../../../support/seed-rows.ts'
import { type ReceiverResponse, startReceiver } from '../../../support/webhook-receiver.ts'
import { DeliveryBench } from './delivery-bench.ts'

const { database } = await testDatabase()
const clocked = await clockedDatabase()
/** Without retries of other environments, which would be claimed too as soon as they are due. */
const quiet = await testDatabase()

const PAYLOAD = examplePayload('link_token:completed')

async function openBench(db = database): Promise<DeliveryBench> {
  return new DeliveryBench(db, await seedEnvironment(db))
}

describe('an event', () => {
  it('is delivered to the webhooks that ask for it, as the standardwebhooks library verifies it', async () => {
    await using bench = await openBench()
    await using receiver = await startReceiver()
    const all = await bench.webhook(receiver.url)
    const some = await bench.webhook(receiver.url, { eventTypes: ['link_token:*'] })
    await bench.webhook(receiver.url, { eventTypes: ['integrated_account:*'] })
    const except = await bench.webhook(receiver.url)
    const filtered = await bench.webhook(receiver.url, { filter: { 'payload.tenant_id': 'Größe' } })
    const eventId = await bench.event({ payload: { ...PAYLOAD, tenant_id: 'Größe' }, exceptWebhookId: except.id })
    const other = await bench.event({ exceptWebhookId: except.id })
    await bench.run()
    const webhooksOf = async (id: string) => (await bench.deliveries(id)).map(({ webhookId }) => webhookId)
    expect(await webhooksOf(eventId)).toEqual([all.id, some.id, filtered.id])
    expect(await webhooksOf(other)).toEqual([all.id, some.id])
    const secrets = [all.secret, some.secret, filtered.secret, all.secret, some.secret]
    const bodies = receiver.received.map(({ headers, body }) => {
      const { webhook_id: id } = JSON.parse(body)
      const secret = [all, some, filtered].find((webhook) => webhook.id === id)?.secret ?? ''
      return new Webhook(secret).verify(body, headers as Record<string, string>)
    })
    expect(bodies).toHaveLength(secrets.length)
    expect(bodies).toContainEqual(expect.objectContaining({ id: eventId, payload: { ...PAYLOAD, tenant_id: 'Größe' } }))
    expect(receiver.received.map(({ headers }) => headers['webhook-id']).sort()).toEqual(
      [eventId, eventId, eventId, other, other].sort(),
    )
  })

  it('is fanned out once by dispatchers of several processes', async () => {
    await using bench = await openBench()
    await using receiver = await startReceiver()
    await bench.webhook(receiver.url)
    const ids = await Promise.all(Array.from({ length: 40 }, () => bench.event()))
    await Promise.all(Array.from({ length: 6 }, () => bench.worker.dispatchOnce()))
    expect((await bench.deliveries()).map(({ eventId }) => eventId).sort()).toEqual([...ids].sort())
  })
})

describe('an attempt', () => {
  it('is settled in the page of its delivery: no index has a column that changes', async () => {
    const indexed = await query<{ readonly column: string }>(
      database.pool,
      `select distinct a.attname as column from pg_index i join pg_depend d on d.objid = i.indexrelid and d.refobjid = i.indrelid
       join pg_attribute a on a.attrelid = i.indrelid and a.attnum = d.refobjsubid where i.indrelid = 'delivery'::regclass`,
    )
    const columns = indexed.map(({ column }) => column)
    expect(columns).toContain('given_up')
    const settled = ['state', 'attempts', 'next_attempt_at', 'last_status', 'last_error_class', 'finished_at']
    expect(columns.filter((column) => settled.includes(column))).toEqual([])
  })

  it('is recorded with timings, request and response', async () => {
    await using bench = await openBench()
    await using receiver = await startReceiver(() => ({ status: 201, headers: { 'x-a': 'b' }, body: 'fine\0' }))
    await bench.webhook(receiver.url, { headers: { 'x-api-key': 'hidden' } })
    await bench.event()
    await bench.run()
    const [delivery] = await bench.deliveries()
    expect(delivery).toMatchObject({
      state: 'delivered',
      attempts: 1,
      lastStatus: 201,
      lastErrorClass: null,
      nextAttemptAt: null,
    })
    const attempts = await query<Record<string, unknown>>(
      database.pool,
      'select * from delivery_attempt where delivery_id = :id',
      { id: delivery?.id ?? '' },
    )
    expect(attempts).toEqual([
      expect.objectContaining({
        n: 1,
        status: 201,
        errorClass: null,
        connectMs: expect.any(Number),
        firstByteMs: expect.any(Number),
        totalMs: expect.any(Number),
        remoteAddress: '127.0.0.1',
        responseBody: 'fine\ufffd',
        responseHeaders: expect.arrayContaining([['x-a', 'b']]),
        requestHeaders: expect.arrayContaining([
          ['x-api-key', '***'],
          ['webhook-id', delivery?.eventId],
          ['webhook-signature', expect.stringMatching(/^v1,/)],
        ]),
      }),
    ])
    expect(receiver.received[0]?.headers['x-api-key']).toBe('hidden')
  })

  it('is recorded without the secrets that the receiver returns', async () => {
    await using bench = await openBench()
    const answer: { headers: Record<string, string>; body: string } = { headers: {}, body: '' }
    await using receiver = await startReceiver(() => ({ status: 200, ...answer }))
    const { secret } = await bench.webhook(receiver.url, { headers: { 'x-api-key': 'key of the receiver' } })
    answer.headers = { 'x-echo': 'key of the receiver' }
    answer.body = `{"x-api-key": "key of the receiver", "secret": "${secret}", "status": "ok"}`
    await bench.event()
    await bench.run()
    const [delivery] = await bench.deliveries()
    const sql =
      'select response_headers as headers, response_body as body from delivery_attempt where delivery_id = :id'
    const [stored] = await query<Record<string, unknown>>(database.pool, sql, { id: delivery?.id ?? '' })
    expect(stored?.headers).toContainEqual(['x-echo', '***'])
    expect(stored?.body).toBe('{"x-api-key": "***", "secret": "***", "status": "ok"}')
  })

  it.each<{ answer: ReceiverResponse; state: string; error: string | null; retriesAfterMs: number | null }>([
    { answer: { status: 500 }, state: 'pending', error: 'status_5xx', retriesAfterMs: 5_000 },
    { answer: { status: 404 }, state: 'pending', error: 'status_4xx', retriesAfterMs: 5_000 },
    {
      answer: { status: 302, headers: { location: '/' } },
      state: 'pending',
      error: 'status_3xx',
      retriesAfterMs: 5_000,
    },
    { answer: 'hang-up', state: 'pending', error: 'reset', retriesAfterMs: 5_000 },
    {
      answer: { status: 429, headers: { 'retry-after': '90' } },
      state: 'pending',
      error: 'status_4xx',
      retriesAfterMs: 90_000,
    },
    {
      answer: { status: 503, headers: { 'retry-after': '1' } },
      state: 'pending',
      error: 'status_5xx',
      retriesAfterMs: 5_000,
    },
    { answer: { status: 410 }, state: 'failed', error: 'status_4xx', retriesAfterMs: null },
  ])('answered with $answer leaves the delivery $state', async ({ answer, state, error, retriesAfterMs }) => {
    await clocked.clock.set(new Date())
    await using bench = await openBench(clocked.database)
    await using receiver = await startReceiver(() => answer)
    await bench.webhook(receiver.url)
    await bench.event()
    await bench.run()
    const [delivery] = await bench.deliveries()
    expect(delivery).toMatchObject({ state, attempts: 1, lastErrorClass: error })
    const waitMs = delivery?.nextAttemptAt ? delivery.nextAttemptAt.getTime() - clocked.clock.now().getTime() : null
    expect(waitMs).toBe(retriesAfterMs)
  })
})

describe('a receiver that fails', () => {
  it('gets ten attempts with the same id and bytes on the schedule of Standard Webhooks, then the delivery has failed', async () => {
    await clocked.clock.set(new Date())
    await using bench = await openBench(clocked.database)
    await using receiver = await startReceiver(() => ({ status: 500 }))
    const { secret } = await bench.webhook(receiver.url)
    await bench.event()
    await bench.run()
    const waits: number[] = []
    for (;;) {
      const [delivery] = await bench.deliveries()
      if (!delivery?.nextAttemptAt) break
      const waitMs = delivery.nextAttemptAt.getTime() - clocked.clock.now().getTime()
      waits.push(waitMs / 1_000)
      await clocked.clock.advance(waitMs - 1)
      await bench.send()
      expect(receiver.received).toHaveLength(waits.length)
      await clocked.clock.advance(1)
      await bench.send()
    }
    expect(waits).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400])
    expect(await bench.deliveries()).toMatchObject([{ state: 'failed', attempts: 10, lastStatus: 500 }])
    expect(new Set(receiver.received.map(({ headers, body }) => `${headers['webhook-id']} ${body}`)).size).toBe(1)
    for (const { headers, body } of receiver.received)
      new Webhook(secret).verify(body, headers as Record<string, string>)
  })

  it('and accepts a later attempt has the delivery', async () => {
    await clocked.clock.set(new Date())
    await using bench = await openBench(clocked.database)
    await using receiver = await startReceiver((_request, index) => ({ status: index < 2 ? 500 : 204 }))
    await bench.webhook(receiver.url)
    await bench.event()
    await bench.run()
    for (const ms of [5_000, 300_000]) {
      await clocked.clock.advance(ms)
      await bench.send()
    }
    expect(await bench.deliveries()).toMatchObject([{ state: 'delivered', attempts: 3, lastStatus: 204 }])
  })
})

describe('a delivery', () => {
  it.each([
    ['webhook_deleted', 'delete from webhook where id = :id'],
    ['webhook_paused', 'update webhook set is_active = false where id = :id'],
    ['webhook_disabled', `update webhook set is_active = false, disabled_reason = 'gone' where id = :id`],
    ['event_deleted', 'delete from event where environment_id = (select environment_id from webhook where id = :id)'],
  ])('is discarded because of %s', async (reason, change) => {
    await using bench = await openBench()
    await using receiver = await startReceiver()
    const { id } = await bench.webhook(receiver.url)
    await bench.event()
    await bench.worker.dispatchOnce()
    await execute(database.pool, change, { id })
    await bench.send()
    expect(await bench.deliveries()).toMatchObject([
      { state: 'discarded', attempts: 0, lastErrorClass: reason, nextAttemptAt: null },
    ])
    expect(receiver.received).toHaveLength(0)
  })

  it('whose worker died is sent again under the same id', async () => {
    await clocked.clock.set(new Date())
    await using bench = await openBench(clocked.database)
    await using receiver = await startReceiver()
    await bench.webhook(receiver.url)
    await bench.event()
    await bench.worker.dispatchOnce()
    // What a process that was killed leaves behind: a lease, and perhaps a request that was sent.
    const { id } = (await bench.deliveries())[0] as { id: string }
    await execute(
      clocked.database.pool,
      `with q as (delete from delivery_queue where delivery_id = :id returning *)
       insert into delivery_lease (delivery_id, environment_id, webhook_id, event_id, trigger, queue_group, lease_id, holder, attempt, attempt_base, claimed_at, expires_at)
       select delivery_id, environment_id, webhook_id, event_id, trigger, queue_group, :leaseId, 'dead', 1, 0, now(), now() + interval '60 s' from q`,
      { id, leaseId: newId() },
    )
    await bench.send()
    expect(receiver.received).toHaveLength(0)
    await clocked.clock.advance(60_000)
    await bench.worker.reapOnce()
    await bench.send()
    expect(receiver.received).toHaveLength(1)
    expect(await bench.deliveries()).toMatchObject([{ state: 'delivered', attempts: 2 }])
  })
})

describe('a webhook with a rate limit', () => {
  it('gets no more than that in a window, and the rest later without counting an attempt', async () => {
    await clocked.clock.set(new Date())
    await using bench = await openBench(clocked.database)
    await using receiver = await startReceiver()
    await bench.webhook(receiver.url, { rateLimit: { requests: 3, windowSeconds: 10 } })
    for (let n = 0; n < 5; n++) await bench.event()
    await bench.run()
    expect(receiver.received).toHaveLength(3)
    expect((await bench.deliveries()).map(({ state, attempts }) => `${state} ${attempts}`).sort()).toEqual([
      'delivered 1',
      'delivered 1',
      'delivered 1',
      'pending 0',
      'pending 0',
    ])
  })
})

describe('a delivery whose webhook has secrets that cannot be decrypted', () => {
  it.each([
    ['waits for a key', 0, { outcome: { kind: 'rate_limited', afterMs: 60_000 } }],
    ['has failed after three days', 73, { outcome: { kind: 'failed' }, errorClass: 'webhook_unreadable' }],
  ])('%s', async (_, hours, settlement) => {
    const delivery = { id: newId(Date.now() - hours * HOUR_MS) } as Parameters<typeof sendDelivery>[1]
    const deps = { clock: systemClock } as Parameters<typeof sendDelivery>[0]
    const parts = { webhook: 'unreadable', event: undefined } as const
    expect(await sendDelivery(deps, delivery, parts, new AbortController().signal)).toMatchObject(settlement)
  })
})

describe('the slots of a worker', () => {
  it('are shared half and half by new deliveries and the backlog', async () => {
    const environmentId = await seedEnvironment(quiet.database)
    await using bench = new DeliveryBench(quiet.database, environmentId, 8)
    const held: (() => void)[] = []
    await using receiver = await startReceiver(
      () => new Promise<ReceiverResponse>((resolve) => held.push(() => resolve({ status: 204 }))),
    )
    const { id: webhookId } = await bench.webhook(receiver.url)
    const eventIds = await Promise.all(Array.from({ length: 20 }, () => bench.event()))
    await quiet.database.transaction((tx) =>
      enqueueDeliveries(
        tx,
        eventIds.map((eventId) => ({ environmentId, webhookId, eventId, trigger: 'recovery' as const })),
      ),
    )
    await bench.worker.dispatchOnce()
    await bench.worker.sendOnce()
    const groups = await query(
      quiet.database.pool,
      'select queue_group, count(*) as count from delivery_lease where environment_id = :environmentId group by 1 order by 1',
      { environmentId },
    )
    expect(groups).toEqual([
      { queueGroup: 'first', count: 4 },
      { queueGroup: 'retry', count: 4 },
    ])
    while (bench.worker.stats.inFlight > 0) {
      for (const answer of held.splice(0)) answer()
      await new Promise(setImmediate)
    }
  })

  it('are not taken by one webhook alone', async () => {
    const environmentId = await seedEnvironment(database)
    await using bench = new DeliveryBench(database, environmentId, 64)
    await using receiver = await startReceiver()
    await using hanging = await startReceiver(() => new Promise<ReceiverResponse>(() => {}))
    await bench.webhook(hanging.url)
    for (let n = 0; n < 100; n++) await bench.event()
    await bench.worker.dispatchOnce()
    await bench.webhook(receiver.url)
    const eventId = await bench.event()
    await bench.worker.dispatchOnce()
    await bench.worker.sendOnce()
    await expect.poll(() => bench.worker.stats.outcomes.delivered).toBe(1)
    expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([eventId])
    await bench.worker[Symbol.asyncDispose]()
    expect((await bench.deliveries()).filter(({ attempts }) => attempts === 0)).toHaveLength(101)
  })
})
