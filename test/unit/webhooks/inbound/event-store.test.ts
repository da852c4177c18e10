import { describe, expect, it, test } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { dedupeKeyOf } from '../../../../src/webhooks/inbound/dedupe-key.ts'
import { createEventStore } from '../../../../src/webhooks/inbound/event-store.ts'
import { processFixture } from './process-fixture.ts'

const { database, own, accountWith } = await processFixture()
const store = createEventStore(database)
const { address } = await accountWith({})

/** Stores a request for each key, all in one batch behind a first one. @returns what became of each */
async function storeAll(keys: readonly (string | null)[]): Promise<readonly string[]> {
  const first = [store.store(eventOf(null)), store.store(eventOf(null))]
  const outcomes = await Promise.allSettled(keys.map((key) => store.store(eventOf(key))))
  await Promise.all(first)
  return outcomes.map((each) =>
    each.status === 'rejected' ? 'failed' : each.value.isDuplicate ? 'duplicate' : 'stored',
  )
}

function eventOf(key: string | null) {
  return {
    environmentId: own.environmentId,
    id: newId(),
    sourceKind: address.kind,
    sourceId: address.id,
    environmentIntegrationId: address.environmentIntegrationId,
    integratedAccountId: address.id,
    method: 'POST',
    path: '/hook',
    query: '',
    remoteAddress: '192.0.2.1',
    bodyBytes: 0,
    state: 'received' as const,
    signature: 'none' as const,
    dedupe: key === null ? undefined : { key, windowSeconds: 60 },
    providerTime: null,
    trace: {},
    headers: [],
    body: new Uint8Array(),
    payload: null,
  }
}

/** The key of a delivery whose id this is. */
function keyOf(id: string): string | undefined {
  const keys = [[() => ({ kind: 'ok' as const, value: [id] })]]
  const dedupe = { keys, windowSeconds: 60, contentWindowSeconds: 60, headers: 'all' as const }
  return dedupeKeyOf({ dedupe }, { request: {}, received: {}, scope: {} } as never)?.key
}

describe('requests that are stored together', () => {
  it.each([
    ['a key that cannot be stored', 'a\0b', ['stored', 'failed', 'stored', 'duplicate']],
    ['a key that is another one when it is stored', '\uFFFD', ['stored', 'duplicate', 'stored', 'duplicate']],
  ])('do not fail for %s of one of them', async (_what, key, outcomes) => {
    const id = newId()
    expect(await storeAll([`${id}\uD800`, key === '\uFFFD' ? id + key : key, null, `${id}\uD800`])).toEqual(outcomes)
  })
})

it('of requests that are stored together one of each key is stored, the first', async () => {
  const [one, other] = [newId(), newId()]
  expect(await storeAll([one, other, one, null, one])).toEqual(['stored', 'stored', 'duplicate', 'stored', 'duplicate'])
  expect(await storeAll([other, one])).toEqual(['duplicate', 'duplicate'])
})

test.each([
  ['lone surrogates', '\uD800', '\uD801'],
  ['a lone surrogate and its replacement', 'a\uD800', 'a\uFFFD'],
  ['zero characters', 'a\0', 'a'],
])('ids with %s have keys of their own, which can be stored', async (_what, one, other) => {
  const keys = [keyOf(one), keyOf(other)]
  expect(new Set(keys).size).toBe(2)
  expect(keys.every((key) => key?.isWellFormed() && !key.includes('\0'))).toBe(true)
})
