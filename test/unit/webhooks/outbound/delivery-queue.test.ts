import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Db } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { Lease } from '../../../../src/foundation/queue/index.ts'
import { claimRoundRobin } from '../../../../src/foundation/queue/sql/round-robin-claim.ts'
import { DeliveryQueue, type QueuedDelivery } from '../../../../src/webhooks/outbound/delivery-queue.ts'
import { DELIVERY_QUEUE, IN_FLIGHT_PER_WEBHOOK_MAX } from '../../../../src/webhooks/outbound/sql/queue.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const ENVIRONMENT = newId()
const WEBHOOKS = Array.from({ length: 5 }, () => newId())
let queue: DeliveryQueue

beforeEach(async () => {
  queue = new DeliveryQueue({ database, random: () => 0 })
  for (const table of ['delivery_queue', 'delivery_lease', 'delivery'])
    await execute(database.pool, `truncate ${table}`)
})

/** Puts deliveries of the webhook with that number into a group, in order. */
async function enqueue(webhook: number, count: number, group = 'first'): Promise<void> {
  await execute(
    database.pool,
    `with d as (
       insert into delivery (environment_id, id, event_id, event_type, webhook_id, trigger)
       select :environmentId, id::uuid, :eventId, 'record:created', :webhookId, 'automatic' from unnest(:ids::text[]) id returning *
     )
     insert into delivery_queue (delivery_id, environment_id, webhook_id, event_id, trigger, queue_group, available_at, attempt)
     select id, environment_id, webhook_id, event_id, trigger, :group, now(), 0 from d`,
    {
      environmentId: ENVIRONMENT,
      eventId: newId(),
      webhookId: WEBHOOKS[webhook] ?? '',
      ids: Array.from({ length: count }, () => newId()),
      group,
    },
  )
}

async function claim(limit: number, rest: { group?: string; limits?: Readonly<Record<number, number>> } = {}) {
  const keyLimits = Object.entries(rest.limits ?? {}).map(([webhook, leases]) => ({
    key: WEBHOOKS[Number(webhook)] ?? '',
    leases,
  }))
  return await queue.claim({ group: rest.group ?? 'first', holder: 'test', limit, keyLimits })
}

/** How many were claimed of each webhook. */
function countsOf(claimed: readonly Lease<QueuedDelivery>[]): readonly number[] {
  return WEBHOOKS.map((id) => claimed.filter(({ concurrencyKey }) => concurrencyKey === id).length)
}

async function waitingIn(group: string): Promise<number> {
  return (await query(database.pool, 'select from delivery_queue where queue_group = :group', { group })).length
}

/** Entries of the index of claims that this transaction has read. */
async function entriesRead(tx: Db): Promise<number> {
  const sql = `select pg_stat_get_xact_tuples_returned('delivery_queue_claim'::regclass) as entries`
  return (await query<{ readonly entries: number }>(tx, sql))[0]?.entries ?? 0
}

describe('a claim', () => {
  it('takes equal shares of the webhooks, and the rest of those that have more', async () => {
    await enqueue(0, 100)
    await enqueue(1, 3)
    await enqueue(2, 4)
    expect(countsOf(await claim(12))).toEqual([5, 3, 4, 0, 0])
  })

  it('takes the deliveries of a webhook in their order', async () => {
    await enqueue(0, 20)
    const ids = [...(await claim(4)), ...(await claim(4))].map(({ id }) => id)
    expect(ids).toEqual([...ids].sort())
  })

  it('begins with the webhook behind the one that had its turn', async () => {
    for (const webhook of WEBHOOKS.keys()) await enqueue(webhook, 2)
    const turns = [...(await claim(2)), ...(await claim(2))]
    expect(Math.max(...countsOf(turns))).toBe(1)
    expect(Math.min(...countsOf([...turns, ...(await claim(2))]))).toBe(1)
  })

  it('holds no more of a webhook than its limit, in each group', async () => {
    await enqueue(0, 100)
    await enqueue(0, 100, 'retry')
    await enqueue(1, 5)
    await enqueue(2, 5)
    expect(countsOf(await claim(200, { limits: { 1: 0, 2: 1 } }))).toEqual([IN_FLIGHT_PER_WEBHOOK_MAX, 0, 1, 0, 0])
    expect(countsOf(await claim(200, { limits: { 1: 2, 2: 1 } }))).toEqual([0, 2, 0, 0, 0])
    expect(countsOf(await claim(200, { group: 'retry' }))).toEqual([IN_FLIGHT_PER_WEBHOOK_MAX, 0, 0, 0, 0])
  })

  it('takes no delivery that another takes at the same moment', async () => {
    for (const webhook of WEBHOOKS.keys()) await enqueue(webhook, 30)
    const claimed = (await Promise.all(Array.from({ length: 8 }, () => claim(20)))).flat()
    expect(new Set(claimed.map(({ id }) => id)).size).toBe(claimed.length)
  })

  it('reads no more entries of the index when more waits for the webhooks before it', async () => {
    await enqueue(0, 3_000)
    await enqueue(1, 5)
    const afterKey = WEBHOOKS[0] ?? ''
    const read = await database.transaction(async (tx) => {
      const before = await entriesRead(tx)
      const leaseIds = Array.from({ length: 5 }, () => newId())
      const request = { group: 'first', holder: 'test', afterKey, keyLimits: [], leaseIds, leaseMs: 60_000 }
      expect((await claimRoundRobin(tx, DELIVERY_QUEUE, request)).leases).toHaveLength(5)
      return (await entriesRead(tx)) - before
    })
    expect(read).toBeLessThan(50)
  })

  it('finds every webhook of more than one visit', async () => {
    const ids = Array.from({ length: 600 }, () => newId())
    await execute(
      database.pool,
      `insert into delivery_queue (delivery_id, environment_id, webhook_id, event_id, trigger, queue_group, available_at, attempt)
       select id, :environmentId, id, :environmentId, 'automatic', 'first', case when n = 600 then now() else now() + interval '1 h' end, 0
       from unnest(:ids::uuid[]) with ordinality as v (id, n)`,
      { environmentId: ENVIRONMENT, ids },
    )
    expect((await claim(10)).map(({ id }) => id)).toEqual(ids.slice(-1))
  })
})

describe('a settled delivery', () => {
  it.each([
    ['retry', { kind: 'retry', error: { reason: 'x', message: 'x' } }, 'retry'],
    ['rate_limited', { kind: 'rate_limited', afterMs: 0 }, 'first'],
    ['released', { kind: 'released' }, 'first'],
  ] as const)('that ended with %s waits in the group of its next attempt', async (_kind, outcome, group) => {
    await enqueue(0, 1)
    const [delivery] = await claim(1)
    if (delivery === undefined) throw new Error('nothing was claimed')
    expect(await queue.settleResults([{ delivery, outcome }])).toEqual(['pending'])
    expect(await waitingIn(group)).toBe(1)
    expect(await queue.settleResults([{ delivery, outcome }])).toEqual([undefined])
  })
})
