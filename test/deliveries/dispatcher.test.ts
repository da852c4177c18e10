import { describe, expect, it } from 'vitest'
import { dispatchEvents } from '../../src/deliveries/dispatcher.ts'
import { EVENT_TYPES } from '../../src/events/catalog.ts'
import { type EventType, examplePayload } from '../../src/events/index.ts'
import { testDatabase } from '../support/database.ts'
import { seedEnvironment } from '../support/seed-rows.ts'
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
    while ((await dispatchEvents(database)).hasMore);
    const deliveries = await bench.deliveries()
    for (const { id, eventTypes, expected } of webhooks) {
      const sent = deliveries.filter(({ webhook_id }) => webhook_id === id).map(({ event_id }) => typeOf.get(event_id))
      expect(sent.sort(), `event_types ${eventTypes}`).toEqual([...expected].sort())
    }
  })
})

function typesOf(subject: string): readonly string[] {
  return EVENT_TYPES.filter((type) => type.startsWith(`${subject}:`))
}
