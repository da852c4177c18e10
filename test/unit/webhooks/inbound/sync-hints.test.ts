import { beforeEach, describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { syncHintStarter } from '../../../../src/webhooks/inbound/sync-hints.ts'
import { processFixture } from './process-fixture.ts'

const fixture = await processFixture()
const { tx, database, syncs, receive, processAll, find, itemsOf, accountWith } = fixture

const WEBHOOK = { events: 'body.resources.{"type": "sync_hint", "resource": $}' }
const starter = () => syncHintStarter({ database, syncs, logger: silentLogger })

beforeEach(async () => {
  syncs.triggers = ['trigger-1']
  syncs.failure = undefined
  syncs.started.length = 0
  await execute(tx, 'delete from sync_hint')
})

async function hints() {
  return await query<{ resource: string; hints: number; seconds: number }>(
    tx,
    `select resource, hints, extract(epoch from due_at - now())::float8 as seconds from sync_hint order by resource`,
  )
}

async function makeDue(): Promise<void> {
  await execute(tx, "update sync_hint set due_at = now() - interval '1 second'")
}

describe('hints of a third party', () => {
  it('about one resource of one account start one sync, ten seconds after the first', async () => {
    const { address, id: accountId } = await accountWith(WEBHOOK)
    const ids = []
    for (let n = 0; n < 5; n++) ids.push(await receive(address, { resources: ['contacts', 'contacts', 'deals'] }))
    await processAll()
    const [contacts, deals] = await hints()
    expect([contacts, deals]).toMatchObject([
      { resource: 'contacts', hints: 10 },
      { resource: 'deals', hints: 5 },
    ])
    expect(contacts?.seconds).toBeGreaterThan(0)
    expect(contacts?.seconds).toBeLessThanOrEqual(10)
    expect(await starter().runOnce()).toBe(false)
    expect(syncs.started).toEqual([])
    await makeDue()
    const two = [starter(), starter()]
    await Promise.all(
      two.map(async (each) => {
        while (await each.runOnce());
      }),
    )
    expect(syncs.started).toHaveLength(2)
    expect(syncs.started).toEqual(
      expect.arrayContaining([
        { integratedAccountId: accountId, resource: 'contacts' },
        { integratedAccountId: accountId, resource: 'deals' },
      ]),
    )
    const items = (await Promise.all(ids.map(itemsOf))).flat()
    expect(items).toHaveLength(15)
    for (const item of items)
      expect(item).toMatchObject({
        state: 'hint',
        detail: expect.stringMatching(/^started run .* of trigger trigger-1$/),
      })
    expect(await find(ids[0] ?? '')).toMatchObject({ state: 'processed', trace: { routing: { hint: 3 } } })
  })

  it('that come after the sync has started start another one', async () => {
    const { address } = await accountWith(WEBHOOK)
    for (let times = 1; times <= 2; times++) {
      await receive(address, { resources: ['contacts'] })
      await processAll()
      await makeDue()
      expect(await starter().runOnce()).toBe(true)
      expect(syncs.started).toHaveLength(times)
    }
  })

  it('lead to nothing when no trigger reads the resource', async () => {
    syncs.triggers = []
    const { address } = await accountWith(WEBHOOK)
    const id = await receive(address, { resources: ['contacts'] })
    await processAll()
    expect(await hints()).toEqual([])
    expect(await itemsOf(id)).toMatchObject([
      { state: 'ignored', detail: 'no active trigger of the account reads contacts' },
    ])
  })

  it('wait while no run can be created', async () => {
    const { address } = await accountWith(WEBHOOK)
    await receive(address, { resources: ['contacts'] })
    await processAll()
    await makeDue()
    syncs.failure = new Failure('GROUP_FULL', 'full')
    expect(await starter().runOnce()).toBe(true)
    expect((await hints())[0]?.seconds).toBeGreaterThan(20)
    syncs.failure = undefined
    await makeDue()
    await starter().runOnce()
    expect(syncs.started).toHaveLength(1)
    expect(await hints()).toEqual([])
  })
})
