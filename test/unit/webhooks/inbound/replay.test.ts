import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { createTaskRunner, getTask, startTask } from '../../../../src/foundation/queue/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { INBOUND_REPLAY_TASK, replayInboundEvent } from '../../../../src/webhooks/inbound/index.ts'
import { contendForRows } from '../../../support/row-contention.ts'
import { processFixture } from './process-fixture.ts'

const fixture = await processFixture()
const { tx, own, other, database, receive, processAll, find, eventsOf, itemsOf, accountWith, accountOf } = fixture

const WEBHOOK = {
  events: 'body.items.{"event": "updated", "resource": "contacts", "id": id, "account": team}',
  context_lookup: { value: 'body.team', field: 'team' },
}

const replay = (id: string, environmentId = own.environmentId) =>
  database.transaction((each) => replayInboundEvent(each, environmentId, id))

describe('replaying a received webhook', () => {
  it('processes it again with new events that say so, and keeps what it led to before', async () => {
    const { address } = await accountWith(WEBHOOK)
    const id = await receive(address, { items: [{ id: 1 }] })
    await processAll()
    const [first] = await eventsOf(id)
    expect(await replay(id)).toEqual({ kind: 'queued' })
    expect(await find(id)).toMatchObject({ state: 'received', processedAt: null })
    await processAll()
    const events = await eventsOf(id)
    expect(events.map((event) => event.payload.replay)).toEqual([false, true])
    expect(events[0]).toEqual(first)
    expect(await itemsOf(id)).toMatchObject([
      { index: 0, isReplay: false, eventId: events[0]?.id },
      { index: 1, isReplay: true, eventId: events[1]?.id },
    ])
    const { trace, state } = await find(id)
    expect(state).toBe('processed')
    expect(trace).toMatchObject({ routing: { routed: 1 }, replays: [{ routing: { routed: 1 } }] })
  })

  it('finds the account that was connected after an item found none', async () => {
    const { installation } = await accountWith(WEBHOOK, { team: 'T1' })
    const id = await receive(installation, { items: [{ id: 1, team: 'T2' }] })
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'unrouted' })
    const late = await accountOf(installation.id, { team: 'T2' })
    await replay(id)
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'processed' })
    expect((await eventsOf(id)).map(({ accountId }) => accountId)).toEqual([late.id])
    expect((await itemsOf(id)).map(({ state }) => state)).toEqual(['ignored', 'routed'])
  })

  it('uses the definition as it is now', async () => {
    const { address } = await accountWith({ events: '$error("broken")' })
    const id = await receive(address, { id: 5 })
    await processAll()
    expect(await find(id)).toMatchObject({ state: 'failed' })
    await execute(
      tx,
      `update environment_integration set version = version + 1,
         override = '{"webhook": {"events": "{\\"event\\": \\"created\\", \\"resource\\": \\"r\\", \\"id\\": body.id}"}}'
       where id = :id`,
      { id: address.environmentIntegrationId },
    )
    await replay(id)
    await processAll()
    expect((await eventsOf(id)).map(({ type, payload }) => [type, payload.record_id])).toEqual([
      ['record:created', '5'],
    ])
    expect(await find(id)).toMatchObject({ state: 'processed', error: null })
  })

  it('of one that waits changes nothing', async () => {
    const { address } = await accountWith(WEBHOOK)
    const id = await receive(address, { items: [{ id: 1 }] })
    expect(await replay(id)).toEqual({ kind: 'waiting' })
  })

  it('asked for three times at once is one', async () => {
    const { address } = await accountWith(WEBHOOK)
    const id = await receive(address, { items: [{ id: 1 }] })
    await processAll()
    const outcomes = await contendForRows(
      database,
      'inbound_event',
      [id],
      [1, 2, 3].map(() => () => replay(id)),
    )
    expect(outcomes.map((each) => (each.status === 'fulfilled' ? each.value.kind : each.reason)).sort()).toEqual([
      'queued',
      'waiting',
      'waiting',
    ])
    await processAll()
    expect(await eventsOf(id)).toHaveLength(2)
  })

  it.each(['rejected', 'handshake'])('is impossible for a %s request', async (state) => {
    const { address } = await accountWith(WEBHOOK)
    const id = await receive(address, {})
    await processAll()
    await execute(tx, 'update inbound_event set state = :state where id = :id', { state, id })
    await expect(replay(id)).rejects.toMatchObject({ reason: 'RUN_STATE_CONFLICT', metadata: { state } })
  })

  it('is impossible without its content, for an unknown id and from another environment', async () => {
    const { address } = await accountWith(WEBHOOK)
    const id = await receive(address, {})
    await processAll()
    await expect(replay(newId())).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    await expect(replay('no-uuid')).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    await expect(replay(id, other.environmentId)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    await execute(tx, 'delete from inbound_content where id = :id', { id })
    await expect(replay(id)).rejects.toMatchObject({ reason: 'RUN_STATE_CONFLICT' })
    expect(await query(tx, 'select from inbound_queue')).toEqual([])
  })
})

describe('the task that replays many', () => {
  async function run(params: Readonly<Record<string, string>>) {
    const { environmentId } = own
    const kind = INBOUND_REPLAY_TASK.kind
    const { id } = await database.transaction((each) => startTask(each, { environmentId, kind, params }))
    const runner = createTaskRunner({ database, random: Math.random, logger: silentLogger }, [INBOUND_REPLAY_TASK])
    while (await runner.runOnce());
    await processAll()
    return await getTask(tx, environmentId, id)
  }

  it('takes those that its filter names, and no other', async () => {
    const { installation, address } = await accountWith(WEBHOOK, { team: 'T1' })
    const routed = await receive(installation, { team: 'T1', items: [{ id: 1 }] })
    const lost = await receive(installation, { team: 'T7', items: [{ id: 2 }] })
    const unrelated = await receive(installation, { team: 'T8', items: [{ id: 3 }] })
    const direct = await receive(address, { items: [{ id: 4 }] })
    await processAll()
    const counts = async () =>
      await Promise.all([routed, lost, unrelated, direct].map(async (id) => (await itemsOf(id)).length))
    expect(await run({ state: 'unrouted', lookup_value: 'T7' })).toMatchObject({
      state: 'completed',
      result: { queued: 1, skipped: 0 },
    })
    expect(await counts()).toEqual([1, 2, 1, 1])
    await run({ source_id: address.id })
    expect(await counts()).toEqual([1, 2, 1, 2])
    await run({ integrated_account_id: address.id })
    expect(await counts()).toEqual([2, 2, 1, 3])
    await run({ source_id: installation.id, before: '2020-01-01T00:00:00Z' })
    await run({ source_id: installation.id, after: '2100-01-01T00:00:00Z' })
    expect(await counts()).toEqual([2, 2, 1, 3])
    await run({ source_id: installation.id })
    expect(await counts()).toEqual([3, 3, 2, 3])
  })
})
