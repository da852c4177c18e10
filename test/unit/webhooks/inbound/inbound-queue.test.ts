import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { processInboundEvent } from '../../../../src/webhooks/inbound/handle-event.ts'
import { processFixture } from './process-fixture.ts'

const fixture = await processFixture()
const { tx, deps, queue, processor, receive, processAll, find, eventsOf, accountWith } = fixture

const EVENTS = '{"event": "updated", "resource": "contacts", "id": body.id}'

/** The one event that waits, leased. */
async function claimOne(by: ReturnType<typeof queue>) {
  const [lease, more] = await by.claim('holder', 10)
  if (lease === undefined || more !== undefined) throw new Error('expected one waiting event')
  return lease
}

const sourceOf = ({ stored }: Awaited<ReturnType<typeof claimOne>>) => stored?.event.sourceId

async function expireLeases(): Promise<void> {
  await execute(tx, `update inbound_lease set expires_at = now() - interval '1 second'`)
}

describe('the queue of received webhooks', () => {
  it('is processed once by several workers at the same time', async () => {
    const { address } = await accountWith({ events: EVENTS })
    const ids = []
    for (let n = 0; n < 60; n++) ids.push(await receive(address, { id: n }))
    const workers = ['one', 'two', 'three'].map((holder) => processor({ holder }))
    await Promise.all(
      workers.map(async (worker) => {
        while (await worker.claimOnce()) await worker.idle()
      }),
    )
    const recorded = await Promise.all(ids.map(eventsOf))
    expect(recorded.map((events) => events.length)).toEqual(ids.map(() => 1))
    expect(await query(tx, 'select from inbound_queue union all select from inbound_lease')).toEqual([])
  })

  it('lets a holder that has lost its lease write nothing', async () => {
    const { address } = await accountWith({ events: EVENTS })
    const id = await receive(address, { id: 1 })
    const [first, second] = [queue(), queue()]
    const lost = await claimOne(first)
    const outcome = await processInboundEvent(deps, lost)
    await expireLeases()
    expect(await second.reap()).toBe(1)
    expect(await find(id)).toMatchObject({ state: 'received', error: { reason: 'lease_expired' } })
    const taken = await claimOne(second)
    expect(await first.finish({ lease: lost, outcome })).toBe('lost')
    expect(await eventsOf(id)).toEqual([])
    expect(await second.finish({ lease: taken, outcome: await processInboundEvent(deps, taken) })).toBe('finished')
    expect(await second.finish({ lease: taken, outcome })).toBe('lost')
    expect(await eventsOf(id)).toHaveLength(1)
    expect(await find(id)).toMatchObject({ state: 'processed', error: null })
  })

  it('tries again what failed for a passing reason, and fails it after the last attempt', async () => {
    const { address } = await accountWith({ events: EVENTS })
    const id = await receive(address, { id: 1 })
    const evaluate = async () => {
      throw new Failure('RATE_LIMITED', 'too many expressions are waiting')
    }
    const busy = { ...deps, evaluator: { ...deps.evaluator, evaluate } }
    const errors = []
    for (let attempt = 1; attempt <= 3; attempt++) {
      const by = queue()
      const lease = await claimOne(by)
      await by.finish({ lease, outcome: await processInboundEvent(busy, lease) })
      errors.push([(await find(id)).state, (await find(id)).error?.reason])
    }
    expect(errors).toEqual([
      ['received', 'RATE_LIMITED'],
      ['received', 'RATE_LIMITED'],
      ['failed', 'RATE_LIMITED'],
    ])
    expect(await eventsOf(id)).toEqual([])
  })

  it('fails an event whose holders all died', async () => {
    const { address } = await accountWith({ events: EVENTS })
    const id = await receive(address, { id: 1 })
    for (let attempt = 1; attempt <= 3; attempt++) {
      await claimOne(queue())
      await expireLeases()
      await queue().reap()
    }
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'failed', error: { step: 'load' } })
    expect((await find(id)).error?.message).toContain('crashed or was killed')
  })

  it('leaves a share of every claim to replays while fresh webhooks wait', async () => {
    const { address } = await accountWith({ events: EVENTS })
    for (let n = 0; n < 20; n++) await receive(address, { id: n })
    await execute(
      tx,
      `update inbound_queue set queue_group = 'replay', is_replay = true
       where event_id in (select event_id from inbound_queue order by event_id limit 10)`,
    )
    const leases = await queue().claim('holder', 8)
    expect(leases.map(({ isReplay }) => isReplay).filter(Boolean)).toHaveLength(2)
    await expireLeases()
    await queue().reap()
    await processAll()
  })

  it('has at most 64 events of one address in process, however many workers claim', async () => {
    const [busy, calm] = [await accountWith({ events: EVENTS }), await accountWith({ events: EVENTS })]
    for (let n = 0; n < 70; n++) await receive(busy.address, { id: n })
    await receive(calm.address, { id: 1 })
    const leases: Awaited<ReturnType<typeof claimOne>>[] = []
    for (const holder of ['one', 'two', 'three']) leases.push(...(await queue().claim(holder, 200)))
    const counts = [busy, calm].map(({ address }) => leases.filter((lease) => sourceOf(lease) === address.id).length)
    expect(counts).toEqual([64, 1])
    await expireLeases()
    await queue().reap()
    await processAll()
  })
})
