import { expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import type { Outcome } from '../../src/foundation/queue/index.ts'
import { insertEvents } from '../../src/platform/outbox/sql.ts'
import { DeliveryQueue } from '../../src/webhooks/outbound/delivery-queue.ts'
import { expungeEvent } from '../../src/webhooks/outbound/index.ts'
import { enqueueDeliveries } from '../../src/webhooks/outbound/sql/delivery.ts'
import { FIRST_GROUP } from '../../src/webhooks/outbound/sql/queue.ts'
import { testDatabase } from '../support/database.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane } from '../support/interleavings.ts'
import { seedEnvironment } from '../support/seed-rows.ts'

const { database, target } = await testDatabase()
const tx = database.pool
const environmentId = await seedEnvironment(database)
const { expectAlways } = interleavings(target, fastClock())
const CONTENT = 'the receiver repeats the personal data'

/** An event with one delivery that waits. */
async function arrange(): Promise<string> {
  for (const table of ['delivery_queue', 'delivery_lease', 'delivery_attempt', 'delivery'])
    await execute(tx, `truncate ${table}`)
  const eventId = newId()
  await insertEvents(tx, [
    {
      id: eventId,
      environmentId,
      type: 'integrated_account:updated',
      payload: {},
      integratedAccountId: undefined,
      subjectId: undefined,
    },
  ])
  await database.transaction((tx) =>
    enqueueDeliveries(tx, [{ environmentId, webhookId: newId(), eventId, trigger: 'automatic' }]),
  )
  return eventId
}

/** Claims a delivery, sends it and settles it with the receiver's answer, as a worker does. */
async function deliver({ database, step }: Lane, outcome: Outcome): Promise<void> {
  const queue = new DeliveryQueue({ database, random: () => 0 })
  for (const delivery of await queue.claim({ group: FIRST_GROUP, holder: 'test', limit: 1, keyLimits: [] })) {
    await step('the request is sent')
    const at = new Date()
    const attempt = {
      environmentId,
      deliveryId: delivery.id,
      n: delivery.attempt,
      scheduledAt: at,
      startedAt: at,
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      firstByteMs: null,
      totalMs: 1,
      status: 200,
      errorClass: outcome.kind === 'completed' ? null : 'http_500',
      errorMessage: null,
      remoteAddress: null,
      requestHeaders: [],
      responseHeaders: [['x-repeated', CONTENT] as const],
      responseBody: CONTENT,
    }
    await queue.settleResults([{ delivery, outcome, attempt }])
  }
}

it.each<[string, Outcome]>([
  ['accepts it', { kind: 'completed' }],
  ['rejects it', { kind: 'retry', error: { reason: 'WEBHOOK_REFUSED', message: '' } }],
])('what a receiver that %s answers is gone once the event is expunged', async (_, outcome) => {
  await expectAlways<string>({
    arrange,
    operations: (eventId) => [
      (lane) => deliver(lane, outcome),
      (lane) => lane.database.transaction((each) => expungeEvent(each, environmentId, eventId)),
    ],
    async check(_, results) {
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
      const attempts = await query<object>(tx, 'select response_headers, response_body from delivery_attempt')
      for (const attempt of attempts) expect(attempt).toEqual({ responseHeaders: null, responseBody: null })
      expect(JSON.stringify(await query(tx, 'select * from delivery'))).not.toContain(CONTENT)
      expect(await query(tx, 'select from delivery_lease')).toEqual([])
    },
  })
})
