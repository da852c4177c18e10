import { describe, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import { InboundActivity, silenceMonitor } from '../../../../src/platform/subscriptions/index.ts'
import { subscriptionsFixture } from './fixture.ts'

const fixture = await subscriptionsFixture()
const { database, tx, deps, refOf, eventsOf, overview } = fixture

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const monitor = silenceMonitor({ ...deps, database })

async function account(): Promise<string> {
  return (await fixture.connectTo({})).id
}

/** Deliveries at these times before now, each stored by itself. */
async function deliver(id: string, agesMs: readonly number[]): Promise<void> {
  const activity = new InboundActivity(database)
  for (const age of agesMs) {
    activity.record(refOf(id), new Date(Date.now() - age))
    await activity.flush()
  }
}

const every = (stepMs: number, count: number, lastAgeMs: number) =>
  Array.from({ length: count }, (_, index) => lastAgeMs + (count - 1 - index) * stepMs)

async function silences(id: string): Promise<number> {
  while ((await monitor.runOnce()) === true);
  return (await eventsOf(id)).filter(({ name }) => name === 'webhook_silent').length
}

describe('the silence of a third party', () => {
  it.each<[string, readonly number[], number]>([
    ['daily, quiet for four days', every(DAY_MS, 8, 4 * DAY_MS), 1],
    ['daily, quiet for two days', every(DAY_MS, 8, 2 * DAY_MS), 0],
    ['every minute for days, quiet for 25 hours', every(HOUR_MS, 100, 25 * HOUR_MS), 1],
    ['every hour, quiet for 20 hours', every(HOUR_MS, 100, 20 * HOUR_MS), 0],
    ['weekly, quiet for 10 days', every(7 * DAY_MS, 6, 10 * DAY_MS), 0],
    ['on working days, quiet over a weekend', [11, 10, 9, 8, 7, 4, 3].map((days) => days * DAY_MS), 0],
    ['four times ever', every(DAY_MS, 4, 30 * DAY_MS), 0],
    ['a hundred times within a day', every(HOUR_MS / 5, 100, 30 * DAY_MS), 0],
  ])('%s: %#', async (_what, ages, announced) => {
    const id = await account()
    await deliver(id, ages)
    expect(await silences(id)).toBe(announced)
  })

  it('is announced once, ends with the next delivery, and is announced again after another one', async () => {
    const id = await account()
    await deliver(id, every(HOUR_MS, 200, 2 * DAY_MS))
    expect(await silences(id)).toBe(1)
    expect((await overview(id)).activity?.silentSince).not.toBeNull()
    expect(await silences(id)).toBe(1)
    await deliver(id, [0])
    expect((await overview(id)).activity).toMatchObject({ silentSince: null, inboundCount: 201 })
    // Of the gap of two days a quarter counts.
    expect((await overview(id)).activity?.usualGapSeconds).toBeCloseTo(12 * 3_600, -2)
    const sql = `update webhook_activity set silent_at = silent_at - interval '2 days' where integrated_account_id = :id`
    await execute(tx, sql, { id })
    expect(await silences(id)).toBe(2)
  })

  it('of an account that is not active is not announced', async () => {
    const id = await account()
    await deliver(id, every(DAY_MS, 8, 10 * DAY_MS))
    await fixture.setStatus(id, 'needs_reauth')
    expect(await silences(id)).toBe(0)
  })

  it('has the subscription checked', async () => {
    const { id } = await fixture.subscribeTo({
      create: { type: 'request', config: { method: 'POST', path: '/hooks' } },
      renew: { type: 'request', config: { path: '/hooks/{{subscription.id}}' } },
      id: 'result.id',
    })
    fixture.upstream.script({ request: 'POST /hooks', answer: { json: { id: 'a' } } })
    await fixture.worker().runOnce()
    await deliver(id, every(DAY_MS, 8, 10 * DAY_MS))
    expect(await silences(id)).toBe(1)
    fixture.upstream.script(
      { request: 'GET /hooks/a', answer: { status: 404 } },
      { request: 'POST /hooks', answer: { json: { id: 'b' } } },
    )
    while (await fixture.worker().runOnce());
    expect(await fixture.only(id)).toMatchObject({ externalId: 'b' })
  })
})

describe('collected deliveries', () => {
  it('of many accounts are stored in one statement; those of deleted ones are skipped', async () => {
    const [first, second] = [await account(), await account()]
    const activity = new InboundActivity(database)
    const at = new Date('2026-01-01T00:00:00Z')
    for (let count = 0; count < 10; count++)
      for (const id of [first, second, '01990000-0000-7000-8000-000000000000'])
        activity.record(refOf(id), new Date(at.getTime() + count * 1_000))
    expect(await activity.flush()).toBe(false)
    for (const id of [first, second])
      expect((await overview(id)).activity).toMatchObject({
        lastInboundAt: new Date('2026-01-01T00:00:09Z'),
        inboundCount: 10,
        usualGapSeconds: 0,
      })
    expect(await overview('01990000-0000-7000-8000-000000000000')).toMatchObject({ activity: undefined })
  })
})
