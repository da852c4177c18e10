import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import {
  appendEvents,
  EVENT_TYPES,
  type EventType,
  examplePayload,
  isAskedFor,
  type NewEvent,
} from '../../../../src/platform/outbox/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { seedEnvironment, seedWebhook } from '../../../support/seed-rows.ts'

const { database } = await testDatabase()

/** Sorted types of the events that are marked for dispatch. */
async function markedTypes(environmentId: string): Promise<readonly string[]> {
  const sql = `select e.type from event e join event_dispatch d on d.environment_id = e.environment_id and d.event_id = e.id
     where e.environment_id = :environmentId order by e.type collate "C"`
  return (await query<{ type: string }>(database.pool, sql, { environmentId })).map(({ type }) => type)
}

/** Records one event of each type of the catalog. */
async function appendAllTypes(environmentId: string, given: Partial<NewEvent> = {}): Promise<void> {
  const all = (EVENT_TYPES as readonly EventType[]).map((type) => ({ type, payload: examplePayload(type) }))
  await database.transaction((tx) =>
    appendEvents(
      tx,
      all.map((event) => ({ environmentId, ...event, ...given })),
    ),
  )
}

async function storedEvents(environmentId: string) {
  return await query<{ id: string; type: string; subject: string | null; payload: object; partition: string }>(
    database.pool,
    `select id, type, subject_id as subject, payload, tableoid::regclass::text as partition from event
     where environment_id = :environmentId order by id`,
    { environmentId },
  )
}

describe('appendEvents', () => {
  it('stores events in the order given, in the partition of their day', async () => {
    const environmentId = newId()
    const subjectId = newId()
    const events: NewEvent[] = [
      {
        environmentId,
        type: 'integrated_account:created',
        payload: { ...examplePayload('integrated_account:created'), tenant_id: 'a "quoted", {braced} \\ one' },
        subjectId,
      },
      { environmentId, type: 'link_token:completed', payload: examplePayload('link_token:completed') },
    ]
    await database.transaction((tx) => appendEvents(tx, events))
    const stored = await storedEvents(environmentId)
    expect(stored.map(({ type, subject, payload }) => ({ type, subject, payload }))).toEqual([
      { type: 'integrated_account:created', subject: subjectId, payload: events[0]?.payload },
      { type: 'link_token:completed', subject: null, payload: events[1]?.payload },
    ])
    expect(stored.map(({ partition }) => partition)).toEqual([
      expect.stringMatching(/^event_\d{8}$/),
      expect.stringMatching(/^event_\d{8}$/),
    ])
  })

  it('stores each event under a given id, with its account, and marks it for dispatch', async () => {
    const environmentId = await seedEnvironment(database)
    await seedWebhook(database, environmentId)
    const [id, integratedAccountId, exceptWebhookId] = [newId(), newId(), newId()]
    await database.transaction((tx) =>
      appendEvents(tx, [
        {
          environmentId,
          id,
          type: 'record:created',
          payload: examplePayload('record:created'),
          integratedAccountId,
          exceptWebhookId,
        },
        { environmentId, type: 'webhook:recovered', payload: examplePayload('webhook:recovered') },
      ]),
    )
    const rows = await query(
      database.pool,
      `select e.type, e.id = :id as given, e.integrated_account_id as account, d.except_webhook_id as except, e.created_at = d.created_at as "sameTime"
       from event e join event_dispatch d on d.environment_id = e.environment_id and d.event_id = e.id
       where e.environment_id = :environmentId order by e.type`,
      { environmentId, id },
    )
    expect(rows).toEqual([
      { type: 'record:created', given: true, account: integratedAccountId, except: exceptWebhookId, sameTime: true },
      { type: 'webhook:recovered', given: false, account: null, except: null, sameTime: true },
    ])
  })

  it('stores nothing when the transaction rolls back, and sends nothing for an empty list', async () => {
    const environmentId = newId()
    const failing = database.transaction(async (tx) => {
      await appendEvents(tx, [{ environmentId, type: 'webhook:disabled', payload: {} }])
      throw new Error('the change failed')
    })
    await expect(failing).rejects.toThrow('the change failed')
    await database.transaction((tx) => appendEvents(tx, []))
    expect(await storedEvents(environmentId)).toEqual([])
  })
})

describe('marking events for dispatch', () => {
  it.each([
    [[]],
    [['*']],
    [['integrated_account:*']],
    [['record:*', 'webhook:disabled']],
    [['sync_job_r*']],
    ...EVENT_TYPES.map((type) => [[type]]),
  ])('is done for a webhook of %j where it asks for the type', async (eventTypes) => {
    const environmentId = await seedEnvironment(database)
    await seedWebhook(database, environmentId, { eventTypes })
    await appendAllTypes(environmentId)
    const marked = await markedTypes(environmentId)
    const asked = EVENT_TYPES.filter((type) => isAskedFor(eventTypes, type)).toSorted()
    // The dispatch leaves out what a webhook has to name.
    expect(marked.filter((type) => type !== 'record:meta' || asked.includes(type))).toEqual(asked)
  })

  it('is not done without a webhook, for an inactive one, one of another environment, or the one excepted', async () => {
    const [none, inactive, excepted] = [
      await seedEnvironment(database),
      await seedEnvironment(database),
      await seedEnvironment(database),
    ]
    await seedWebhook(database, inactive, { isActive: false })
    const exceptWebhookId = await seedWebhook(database, excepted)
    await appendAllTypes(none)
    await appendAllTypes(inactive)
    await appendAllTypes(excepted, { exceptWebhookId })
    for (const environmentId of [none, inactive, excepted]) {
      expect(await markedTypes(environmentId)).toEqual([])
      expect(await storedEvents(environmentId)).toHaveLength(EVENT_TYPES.length)
    }
  })

  it('is done for the next event after a webhook was created or turned on, and for none before', async () => {
    const environmentId = await seedEnvironment(database)
    const append = (type: EventType) =>
      database.transaction((tx) => appendEvents(tx, [{ environmentId, type, payload: examplePayload(type) }]))
    await append('integrated_account:created')
    const id = await seedWebhook(database, environmentId)
    await append('integrated_account:active')
    await query(database.pool, 'update webhook set is_active = false where id = :id', { id })
    await append('integrated_account:forbidden_error')
    await query(database.pool, 'update webhook set is_active = true where id = :id', { id })
    await append('integrated_account:deleted')
    expect(await markedTypes(environmentId)).toEqual(['integrated_account:active', 'integrated_account:deleted'])
  })
})
