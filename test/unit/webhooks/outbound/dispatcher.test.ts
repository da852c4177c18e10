import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { EVENT_TYPES, type EventType, examplePayload } from '../../../../src/platform/outbox/index.ts'
import { insertEvents } from '../../../../src/platform/outbox/sql.ts'
import { DELIVERIES_PER_ROUND_MAX, Dispatcher } from '../../../../src/webhooks/outbound/dispatcher.ts'
import { caseCount } from '../../../support/case-count.ts'
import { testDatabase } from '../../../support/database.ts'
import { seedEnvironment } from '../../../support/seed-rows.ts'
import { DeliveryBench } from './delivery-bench.ts'

const { database } = await testDatabase()
const SUBJECTS = [...new Set(EVENT_TYPES.map((type) => type.slice(0, type.indexOf(':'))))]
/** Events that only a webhook gets that names them. */
const NAMED_ONLY = ['record:meta']

const usual = (types: readonly string[]) => types.filter((type) => !NAMED_ONLY.includes(type))

describe('all events of the catalog', () => {
  it('go to the webhooks that ask for them; what has to be named to no pattern', async () => {
    await using bench = new DeliveryBench(database, await seedEnvironment(database))
    const asked: readonly (readonly [readonly string[], readonly string[]])[] = [
      [[], usual(EVENT_TYPES)],
      [['*'], usual(EVENT_TYPES)],
      ...SUBJECTS.map((subject) => [[`${subject}:*`], usual(typesOf(subject))] as const),
      ...EVENT_TYPES.map((type) => [[type], [type]] as const),
      [['*', ...NAMED_ONLY], EVENT_TYPES],
    ]
    const webhooks = []
    for (const [eventTypes, expected] of asked) {
      const { id } = await bench.webhook('https://app.example.com/hook', { eventTypes })
      webhooks.push({ id, eventTypes, expected })
    }
    const typeOf = new Map<string, string>()
    for (const type of EVENT_TYPES as readonly EventType[])
      typeOf.set(await bench.event({ type, payload: examplePayload(type) }), type)
    const dispatcher = new Dispatcher(database)
    while ((await dispatcher.runOnce()).hasMore);
    const deliveries = await bench.deliveries()
    for (const { id, eventTypes, expected } of webhooks) {
      const sent = deliveries.filter(({ webhookId }) => webhookId === id).map(({ eventId }) => typeOf.get(eventId))
      expect(sent.sort(), `event_types ${eventTypes}`).toEqual([...expected].sort())
    }
  })
})

function typesOf(subject: string): readonly string[] {
  return EVENT_TYPES.filter((type) => type.startsWith(`${subject}:`))
}

/** Webhooks for all events, and events of an environment of its own, by the number of each. */
async function seedFanOut(webhooks: number, events: number): Promise<string> {
  const environmentId = await seedEnvironment(database)
  const { pool } = database
  await execute(
    pool,
    `insert into webhook (environment_id, id, target_url, event_types, is_active)
     select :environmentId, id, 'https://app.example.com/', '{}', true from unnest(:ids::uuid[]) id`,
    { environmentId, ids: Array.from({ length: webhooks }, () => newId()) },
  )
  const type: EventType = 'integrated_account:updated'
  const none = { integratedAccountId: undefined, subjectId: undefined }
  await insertEvents(
    pool,
    Array.from({ length: events }, () => ({
      id: newId(),
      environmentId,
      type,
      payload: examplePayload(type),
      ...none,
    })),
  )
  return environmentId
}

const deliveriesOf = async (environmentId: string) => {
  const sql = 'select event_id, webhook_id from delivery where environment_id = :environmentId'
  return await query<{ readonly eventId: string; readonly webhookId: string }>(database.pool, sql, { environmentId })
}
const countWaiting = async () => (await query(database.pool, 'select from event_dispatch')).length

describe('the rounds of dispatch', () => {
  beforeEach(async () => {
    await execute(database.pool, 'truncate event_dispatch')
  })

  it('are bounded by deliveries, and do not make an environment wait for the fan-out of another', async () => {
    const environments = fc.array(fc.tuple(fc.nat({ max: 120 }), fc.nat({ max: 60 })), { minLength: 1, maxLength: 6 })
    const property = fc.asyncProperty(environments, async (given) => {
      const ids = await Promise.all(given.map(([webhooks, events]) => seedFanOut(webhooks, events)))
      const small = await seedFanOut(1, 1)
      const dispatcher = new Dispatcher(database)
      const rounds = [await dispatcher.runOnce()]
      expect(await deliveriesOf(small)).toHaveLength(1)
      while (rounds.at(-1)?.hasMore === true) rounds.push(await dispatcher.runOnce())
      for (const { deliveries } of rounds) expect(deliveries).toBeLessThanOrEqual(DELIVERIES_PER_ROUND_MAX)
      expect(await countWaiting()).toBe(0)
      for (const [index, [webhooks, events]] of given.entries()) {
        const made = await deliveriesOf(ids[index] ?? '')
        expect(new Set(made.map(({ eventId, webhookId }) => `${eventId} ${webhookId}`)).size).toBe(made.length)
        expect(made).toHaveLength(webhooks * events)
      }
    })
    await fc.assert(property, { numRuns: caseCount(4, 60) })
  })

  it('continue an event that is for more webhooks than a round creates deliveries', async () => {
    const environmentId = await seedFanOut(1_000, 8)
    const dispatcher = new Dispatcher(database)
    expect(await dispatcher.runOnce()).toEqual({ events: 5, deliveries: DELIVERIES_PER_ROUND_MAX, hasMore: true })
    expect(await dispatcher.runOnce()).toMatchObject({ events: 3, deliveries: 3_000 })
    const made = await deliveriesOf(environmentId)
    expect(new Set(made.map(({ eventId, webhookId }) => `${eventId} ${webhookId}`)).size).toBe(8_000)
  })

  it('halve when they fail, until they pass, and another environment has its turn meanwhile', async () => {
    const environmentId = await seedFanOut(300, 3)
    const small = await seedFanOut(1, 1)
    const countMax = 100
    const tooSlow: Pick<Database, 'pool' | 'transaction'> = {
      pool: database.pool,
      transaction: (work) =>
        database.transaction(async (tx) => {
          const countOf = async () => (await query(tx, 'select from delivery_queue')).length
          const before = await countOf()
          const result = await work(tx)
          if ((await countOf()) - before > countMax) throw new Error('canceling statement due to statement timeout')
          return result
        }),
    }
    const dispatcher = new Dispatcher(tooSlow)
    let failures = 0
    for (let rounds = 0; rounds < 100 && (await countWaiting()) > 0; rounds++)
      await dispatcher.runOnce().catch(() => {
        failures++
      })
    expect(await countWaiting()).toBe(0)
    expect(failures).toBeGreaterThan(0)
    expect(await deliveriesOf(environmentId)).toHaveLength(900)
    expect(await deliveriesOf(small)).toHaveLength(1)
  })

  it('give every environment its turn when there are more than fit into one', async () => {
    const ids = await Promise.all(Array.from({ length: 60 }, () => seedFanOut(1, 1)))
    const dispatcher = new Dispatcher(database)
    const rounds = [await dispatcher.runOnce(), await dispatcher.runOnce()]
    expect(rounds.map(({ events }) => events)).toEqual([50, 10])
    for (const id of ids) expect(await deliveriesOf(id)).toHaveLength(1)
    expect(await dispatcher.runOnce()).toEqual({ events: 0, deliveries: 0, hasMore: false })
  })
})
