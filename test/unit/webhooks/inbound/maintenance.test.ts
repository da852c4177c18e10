import { expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import { inboundCleaner } from '../../../../src/webhooks/inbound/create-worker.ts'
import type { InboundState } from '../../../../src/webhooks/inbound/inbound-event.ts'
import { insertInboundEvents } from '../../../../src/webhooks/inbound/sql/receive.ts'
import { clockedDatabase } from '../../../support/database.ts'

const { database, clock } = await clockedDatabase()
const HOUR_MS = 3_600_000
const environmentId = newId()
const sourceId = newId()

/** Stores a request as reception does. @returns its id */
async function store(state: InboundState, dedupeKey: string | null = null, windowSeconds = 0): Promise<string> {
  const id = newId()
  const common = { environmentId, id, sourceId, environmentIntegrationId: newId(), state }
  const request = { method: 'POST', path: '/', query: '', remoteAddress: '192.0.2.1', bodyBytes: 2, headers: [] }
  const result = { signature: 'none', providerTime: null, trace: {}, payload: null, integratedAccountId: null } as const
  const event = {
    ...common,
    ...request,
    ...result,
    sourceKind: 'environment_integration',
    body: Buffer.from('{}'),
    dedupe: dedupeKey === null ? undefined : { key: dedupeKey, windowSeconds },
  } as const
  await insertInboundEvents(database.pool, [event])
  return id
}

/** The ids that are left in a table. */
async function idsIn(table: string, column: string): Promise<readonly string[]> {
  const rows = await query<{ readonly id: string }>(
    database.pool,
    `select ${column} as id from ${table} order by 1`,
    {},
  )
  return rows.map(({ id }) => id)
}

it('rejected requests and handshakes are gone after a day, dedupe keys when their window is over', async () => {
  const cleaner = inboundCleaner(database)
  const received = await store('received', 'short', 3_600)
  const lasting = await store('received', 'long', 30 * 3_600)
  const kept = [received, lasting]
  const shortLived = [await store('rejected'), await store('handshake')]
  const everything = [...kept, ...shortLived].sort()

  await clock.stop()
  await clock.advance(23 * HOUR_MS)
  expect(await cleaner.runOnce()).toBe(false)
  expect(await idsIn('inbound_dedupe', 'event_id')).toEqual([lasting])
  expect(await idsIn('inbound_event', 'id')).toEqual(everything)
  expect(await idsIn('inbound_content', 'id')).toEqual(everything)

  await clock.advance(1 * HOUR_MS + 60_000)
  await cleaner.runOnce()
  expect(await idsIn('inbound_short_lived', 'event_id')).toEqual([])
  expect(await idsIn('inbound_event', 'id')).toEqual(kept)
  expect(await idsIn('inbound_content', 'id')).toEqual(kept)

  await clock.advance(6 * HOUR_MS)
  await cleaner.runOnce()
  expect(await idsIn('inbound_dedupe', 'event_id')).toEqual([])
})
