import { expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import { appendEvents, examplePayload } from '../../../../src/platform/outbox/index.ts'
import { enqueueDeliveries } from '../../../../src/webhooks/outbound/sql/delivery.ts'
import { testDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'

const { database } = await testDatabase()

it('creates a delivery with the fields of its event, queued by its trigger', async () => {
  const { environmentId, webhookId, accountIds } = await createTenant(database)
  const [eventId, integratedAccountId] = [newId(), accountIds[0]]
  await database.transaction((tx) =>
    appendEvents(tx, [
      {
        environmentId,
        id: eventId,
        type: 'integrated_account:active',
        payload: examplePayload('integrated_account:active'),
        integratedAccountId,
      },
    ]),
  )
  const item = { environmentId, webhookId, eventId }
  const ids = await database.transaction((tx) =>
    enqueueDeliveries(tx, [
      { ...item, trigger: 'automatic' },
      { ...item, trigger: 'recovery' },
      { ...item, eventId: newId(), trigger: 'automatic' },
    ]),
  )
  const stored = await query(
    database.pool,
    `select d.id, d.event_type, d.integrated_account_id, d.state, q.queue_group, q.webhook_id, q.attempt
     from delivery d join delivery_queue q on q.delivery_id = d.id where d.environment_id = :environmentId order by d.id`,
    { environmentId },
  )
  const common = {
    eventType: 'integrated_account:active',
    integratedAccountId,
    state: 'pending',
    webhookId,
    attempt: 0,
  }
  expect(stored).toEqual([
    { ...common, id: ids[0], queueGroup: 'first' },
    { ...common, id: ids[1], queueGroup: 'retry' },
  ])
})
