import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/index.ts'
import { query } from '../../src/database/database.ts'
import { appendEvents, examplePayload, type NewEvent } from '../../src/events/index.ts'
import { testDatabase } from '../support/database.ts'

const { database } = await testDatabase()

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
    const environmentId = newId()
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
