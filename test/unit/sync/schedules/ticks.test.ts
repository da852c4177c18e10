import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { Database, execute, query } from '../../../../src/foundation/database/index.ts'
import { hideInstallationsOf } from '../../../../src/platform/integrations/sql/installations.ts'
import { daemonQueueGroup } from '../../../../src/sync/runs/run.ts'
import { suspendTrigger } from '../../../../src/sync/schedules/fire-ticks.ts'
import { deleteTrigger, getTrigger, listTicks, listTriggers } from '../../../../src/sync/schedules/index.ts'
import { ShardCursors } from '../../../../src/sync/schedules/shard-cursors.ts'
import { insertTriggers, schedule, YEARLY } from '../../../lab/bench/support/trigger-population.ts'
import { beforeCommit, clockedDatabase } from '../../../support/database.ts'
import { createTenant, readOne } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from './trigger-fixture.ts'

const { database, target, clock } = await clockedDatabase()
beforeEach(() => clearTriggers(database))

const bench = async (accounts = 1) => {
  await clock.set('2026-11-05T12:00:00Z')
  return new TriggerFixture(database, await createTenant(database, accounts), clock)
}

/** Resolves once some statement of this database waits for a lock. */
async function waitUntilBlocked(): Promise<void> {
  const waiting = `select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  while ((await readOne<{ count: number }>(database, waiting)).count === 0);
}

describe('a tick', () => {
  it('becomes one run with job, arguments and destination copied, and the schedule moves on', async () => {
    const at = await bench()
    const trigger = await at.create({ args: { since: '2026' } })
    expect(trigger.nextRunAt?.toISOString()).toBe('2026-11-05T12:00:10.000Z')
    await clock.advance(10_000)
    const nextDueAt = new Date('2026-11-05T12:00:20Z')
    expect(await at.fire()).toMatchObject({ fired: 1, skipped: {}, oldestDueAgeSeconds: 0, nextDueAt })
    const [run] = await at.claim()
    expect(run).toMatchObject({
      triggerId: trigger.id,
      kind: 'cron',
      args: { since: '2026' },
      destination: trigger.destination,
      resources: [{ resource: 'repos', method: 'list' }],
      scheduledFor: new Date('2026-11-05T12:00:10Z'),
    })
    expect(await at.fire()).toMatchObject({ fired: 0, nextDueAt })
  })

  it('of an account that is being deleted is not recorded, and its trigger not found', async () => {
    const at = await bench(2)
    const { environmentId } = at.tenant
    const { id } = await at.create()
    await hideInstallationsOf(database.pool, 'environment_id', [environmentId])
    await clock.advance(60_000)
    const nextDueAt = new Date('2026-11-06T12:01:00Z')
    expect(await at.fire()).toMatchObject({ fired: 0, skipped: {}, missed: 0, nextDueAt })
    expect(await readOne(database, 'select count(*) as count from sync_job_run')).toEqual({ count: 0 })
    const page = { before: undefined, limit: 10 }
    expect(await listTriggers(database.pool, environmentId, {}, page)).toEqual([])
    await expect(getTrigger(database.pool, environmentId, id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('waits for the daemons of the trigger’s group when it has one', async () => {
    const at = await bench()
    const { id } = await at.create({ destination: { kind: 'daemon', groupKey: 'warehouse' } })
    await clock.advance(10_000)
    await at.fire()
    expect(await at.claim()).toEqual([])
    const group = daemonQueueGroup(at.tenant.environmentId, 'warehouse')
    expect(await at.queue.claim({ group, holder: newId(), limit: 1 })).toMatchObject([{ triggerId: id }])
  })

  it('syncs the trigger’s own resources when it has some', async () => {
    const at = await bench()
    await at.create({ resources: [{ resource: 'issues', method: 'list' }] })
    await clock.advance(10_000)
    await at.fire()
    expect((await at.claim())[0]?.resources).toEqual([{ resource: 'issues', method: 'list' }])
  })

  it.each([
    { own: null, expected: 'batch' },
    { own: 'fail_fast', expected: 'fail_fast' },
  ] as const)('does with errors what the trigger says ($own), else the job', async ({ own, expected }) => {
    const at = await bench()
    await execute(database.pool, `update sync_job set error_handling = 'batch' where id = :syncJobId`, {
      syncJobId: at.tenant.syncJobId,
    })
    await at.create({ errorHandling: own })
    await clock.advance(10_000)
    await at.fire()
    expect((await at.claim())[0]?.errorHandling).toBe(expected)
  })

  it('knows the tick whose run takes over, before it fires and after', async () => {
    const at = await bench()
    await at.create()
    await clock.advance(10_000)
    await at.fire()
    const [first] = await at.claim()
    if (first === undefined) throw new Error('the tick has no run')
    const nextTickAt = new Date(first.scheduledFor.getTime() + 10_000)
    expect(first).toMatchObject({ giveUpAfterSeconds: 86_400, nextTickAt })
    await clock.advance(10_000)
    await at.fire()
    await at.queue.settle([{ ...first, outcome: { kind: 'released' } }])
    expect(await at.claim()).toMatchObject([{ id: first.id, nextTickAt }])
  })

  it('does not come due a millisecond early', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(9_999)
    await at.fire()
    expect(await at.ticksOf(id)).toEqual([])
  })

  it('has one run when many workers fire at the same moment', async () => {
    const at = await bench(40)
    const triggers = await Promise.all(Array.from({ length: 40 }, (_, account) => at.create({ account })))
    for (let tick = 0; tick < 3; tick++) {
      await clock.advance(10_000)
      const passes = await Promise.all(Array.from({ length: 6 }, () => at.fire()))
      expect(passes.reduce((sum, { fired, skipped }) => sum + fired + (skipped.overlap ?? 0), 0)).toBe(40)
    }
    for (const { id } of triggers) expect(await at.ticksOf(id)).toEqual(['12:00:10', '12:00:20', '12:00:30'])
  })

  it('stays due when its transaction dies before the commit', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(10_000)
    const dies = beforeCommit(database, () => Promise.reject(new Error('killed')))
    await expect(at.fire({ database: dies })).rejects.toThrow('killed')
    expect(await at.ticksOf(id)).toEqual([])
    await at.fire()
    expect(await at.ticksOf(id)).toEqual(['12:00:10'])
  })

  it('that has its run already makes no second one, and the schedule moves past it', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(10_000)
    await at.fire()
    await execute(database.pool, 'update trigger_schedule set next_fire_at = :nextFireAt where trigger_id = :id', {
      nextFireAt: new Date('2026-11-05T12:00:10Z'),
      id,
    })
    await clock.advance(10_000)
    await at.fire()
    expect(await at.ticksOf(id)).toEqual(['12:00:10', '12:00:20'])
  })

  it('that has its run already is passed over in a batch of others, which all fire once', async () => {
    const at = await bench(4)
    const triggers = await Promise.all(Array.from({ length: 4 }, (_, account) => at.create({ account })))
    const ids = triggers.map(({ id }) => id)
    // One shard, so that all of them share a batch.
    await execute(database.pool, 'update trigger_schedule set shard = 7 where trigger_id = any(:ids::uuid[])', { ids })
    await clock.advance(10_000)
    await at.fire()
    await at.completeWaiting()
    await clock.advance(10_000)
    await execute(
      database.pool,
      'update trigger_schedule set next_fire_at = :nextFireAt where trigger_id = :triggerId',
      {
        nextFireAt: new Date('2026-11-05T12:00:10Z'),
        triggerId: ids[2] ?? '',
      },
    )
    expect(await at.fire()).toMatchObject({ fired: 4, skipped: {}, suspended: [] })
    for (const id of ids) {
      expect(await at.ticksOf(id)).toEqual(['12:00:10', '12:00:20'])
      expect(await at.scheduleOf(id)).toEqual({ nextFireAt: '12:00:30', lastRunAt: '12:00:20', fired: 2, skipped: 0 })
    }
    expect(await at.claim(10)).toHaveLength(4)
  })

  it('that has its run already leaves the latest run on the schedule as it is', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(10_000)
    await at.fire()
    await execute(database.pool, 'update trigger_schedule set next_fire_at = :nextFireAt where trigger_id = :id', {
      nextFireAt: new Date('2026-11-05T12:00:10Z'),
      id,
    })
    expect(await at.fire()).toMatchObject({ fired: 0, skipped: {}, suspended: [] })
    expect(await at.scheduleOf(id)).toEqual({ nextFireAt: '12:00:20', lastRunAt: '12:00:10', fired: 1, skipped: 0 })
  })

  it('is fired by workers of its account’s region alone', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(10_000)
    expect(await at.fire({ regions: ['eu', 'apac'] })).toMatchObject({ fired: 0 })
    expect(await at.fire({ regions: ['wnam'] })).toMatchObject({ fired: 1 })
    expect(await at.ticksOf(id)).toHaveLength(1)
  })

  it('is fired in the next pass when its row was locked in this one', async () => {
    const at = await bench(2)
    const [held, free] = [await at.create({ account: 0 }), await at.create({ account: 1 })]
    // Of one shard, the held one first: the pass reads past it.
    await execute(database.pool, 'update trigger_schedule set shard = 3 where trigger_id = any(:ids::uuid[])', {
      ids: [held.id, free.id],
    })
    const cursors = new ShardCursors(0)
    await clock.advance(10_000)
    await database.transaction(async (tx) => {
      await execute(tx, 'select from trigger_schedule where trigger_id = :id for update', { id: held.id })
      expect(await at.fire({ cursors })).toMatchObject({ fired: 1 })
    })
    expect(await at.fire({ cursors })).toMatchObject({ fired: 1 })
    expect(await at.ticksOf(held.id)).toEqual(['12:00:10'])
  })
})

describe('the statements of a batch', () => {
  it('are planned for any values after a few batches of a connection, and not again for each', async () => {
    await insertTriggers(database, { environments: 2, accountsPerEnvironment: 500, triggersPerAccount: 2 })
    await schedule(database, YEARLY)
    await using single = new Database({ target, poolMax: 1 })
    const at = new TriggerFixture(single, await createTenant(database), clock)
    await at.create()
    for (let batch = 0; batch < 12; batch++) {
      await clock.advance(10_000)
      await at.fire()
    }
    const plans = await query<{ custom: number }>(
      single.pool,
      `select custom_plans as custom from pg_prepared_statements
       where statement like '%insert into sync_job_run%' or statement like '%update skip locked%'`,
    )
    expect(plans).toEqual([{ custom: 5 }, { custom: 5 }])
  })
})

describe('missed ticks', () => {
  it('inside the window each get a run of their own tick', async () => {
    const at = await bench()
    const { id } = await at.create({ cronExpression: '*/10 * * * *' })
    await clock.set('2026-11-05T12:45:00Z')
    await at.fire()
    expect(await at.ticksOf(id)).toEqual(['12:10:00', '12:20:00', '12:30:00', '12:40:00'])
    expect(await at.scheduleOf(id)).toEqual({ nextFireAt: '12:50:00', lastRunAt: '12:40:00', fired: 2, skipped: 2 })
  })

  it('before the window are one entry of the ledger', async () => {
    const at = await bench()
    const { id } = await at.create({ cronExpression: '0 * * * *' })
    await clock.set('2026-11-05T20:30:00Z')
    expect(await at.fire()).toMatchObject({ fired: 1, missed: 7 })
    const { items } = await listTicks(database.pool, at.tenant.environmentId, id, {})
    expect(items).toMatchObject([
      { outcome: 'fired', scheduledFor: new Date('2026-11-05T20:00:00Z') },
      {
        outcome: 'missed',
        missedFrom: new Date('2026-11-05T13:00:00Z'),
        scheduledFor: new Date('2026-11-05T19:00:00Z'),
        missedCount: 7,
      },
    ])
  })

  it('are recorded while the trigger is deleted, and neither waits for the other in vain', async () => {
    const at = await bench()
    const { id } = await at.create({ cronExpression: '0 * * * *' })
    await clock.set('2026-11-05T20:30:00Z')
    let deleted: Promise<void> = Promise.resolve()
    const queue = {
      countWaiting: at.queue.countWaiting.bind(at.queue),
      enqueueTicks: async (...given: Parameters<typeof at.queue.enqueueTicks>) => {
        deleted = deleteTrigger(database.pool, at.tenant.environmentId, id, undefined)
        await waitUntilBlocked()
        await at.queue.enqueueTicks(...given)
      },
    }
    expect(await at.fire({ queue })).toMatchObject({ fired: 1, missed: 7 })
    await deleted
    expect(await readOne(database, 'select count(*) as count from missed_ticks')).toEqual({ count: 0 })
  })

  it('of many triggers are written in bounded transactions, and all of them', async () => {
    const at = await bench(30)
    const triggers = await Promise.all(
      Array.from({ length: 30 }, (_, account) => at.create({ account, cronExpression: '* * * * * *' })),
    )
    await clock.advance(100_000)
    const report = await at.fire()
    expect(report.fired + (report.skipped.overlap ?? 0)).toBe(3_000)
    for (const { id } of triggers) expect(await at.ticksOf(id)).toHaveLength(100)
  })
})

describe('a tick is recorded as skipped', () => {
  it('while one run of the trigger runs and one waits', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(10_000)
    await at.fire()
    const [running] = await at.claim()
    await clock.advance(10_000)
    await at.fire()
    await clock.advance(10_000)
    expect(await at.fire()).toMatchObject({ fired: 0, skipped: { overlap: 1 } })
    const statuses = (await at.runsOf(id)).map(({ status, reason }) => [status, reason])
    expect(statuses).toEqual([
      ['running', null],
      ['created', null],
      ['skipped', 'overlap'],
    ])
    if (running !== undefined) await at.queue.settle([{ ...running, outcome: { kind: 'completed' } }])
    await clock.advance(10_000)
    expect(await at.fire()).toMatchObject({ fired: 1 })
  })

  it.each([['needs_reauth'], ['connecting'], ['post_install_error'], ['validation_error']])(
    'while the account is %s, with the reason',
    async (status) => {
      const at = await bench()
      const { id } = await at.create()
      await execute(database.pool, 'update integrated_account set status = :status where id = :id', {
        status,
        id: at.tenant.accountIds[0] ?? '',
      })
      await clock.advance(10_000)
      await at.fire()
      expect(await at.runsOf(id)).toMatchObject([{ status: 'skipped', reason: `account_${status}` }])
      expect(await at.claim()).toEqual([])
    },
  )

  it('while the integration is disabled', async () => {
    const at = await bench()
    const { id } = await at.create()
    await execute(database.pool, 'update environment_integration set is_enabled = false where id = :installationId', {
      installationId: at.tenant.installationId,
    })
    await clock.advance(10_000)
    await at.fire()
    expect(await at.runsOf(id)).toMatchObject([{ status: 'skipped', reason: 'integration_disabled' }])
  })

  it('while ten thousand runs wait in its group, and not because another group is full', async () => {
    const at = await bench(2)
    const full = await at.create({ account: 0 })
    const other = await at.create({ account: 1, destination: { kind: 'daemon', groupKey: 'warehouse' } })
    await execute(
      database.pool,
      `insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, fair_rank,
         available_at, attempt)
       select gen_random_uuid(), now(), :environmentId, gen_random_uuid(), 'wnam', 'webhook', 1e15, 'infinity', 0
       from generate_series(1, 10000)`,
      { environmentId: at.tenant.environmentId },
    )
    await clock.advance(10_000)
    expect(await at.fire()).toMatchObject({ fired: 1, skipped: { group_full: 1 } })
    expect(await at.runsOf(full.id)).toMatchObject([{ status: 'skipped', reason: 'group_full' }])
    expect(await at.runsOf(other.id)).toMatchObject([{ status: 'created', groupKey: 'warehouse' }])
    await execute(database.pool, 'delete from run_queue where environment_id = :environmentId', {
      environmentId: at.tenant.environmentId,
    })
  })
})

describe('a trigger that cannot be evaluated', () => {
  it('is suspended with the reason and does not hold up the others', async () => {
    const at = await bench(2)
    const bad = await at.create({ account: 0 })
    const good = await at.create({ account: 1 })
    await execute(database.pool, `update trigger_schedule set cron_expression = 'nonsense' where trigger_id = :id`, {
      id: bad.id,
    })
    await clock.advance(10_000)
    expect(await at.fire()).toMatchObject({ fired: 1, suspended: [{ triggerId: bad.id }] })
    expect(await at.ticksOf(good.id)).toHaveLength(1)
    const suspended = await readOne<{ next: Date | null; error: string }>(
      database,
      'select next_fire_at as next, error from trigger_schedule where trigger_id = :id',
      { id: bad.id },
    )
    expect(suspended.next).toBeNull()
    expect(suspended.error).not.toBe('')
  })

  it('is not suspended when its schedule has moved since', async () => {
    const at = await bench()
    const { id } = await at.create()
    const suspend = (time: string, error: string) =>
      database.transaction((tx) => suspendTrigger(tx, { triggerId: id, nextFireAt: new Date(time) }, error))
    expect(await suspend('2026-11-05T12:00:00Z', 'an old error')).toBe(false)
    expect(await suspend('2026-11-05T12:00:10Z', 'this error')).toBe(true)
    const { error } = await readOne<{ error: string }>(
      database,
      'select error from trigger_schedule where trigger_id = :id',
      { id },
    )
    expect(error).toBe('this error')
  })

  it('is found and suspended when the database rejects its row in the middle of a batch', async () => {
    const at = await bench(12)
    const triggers = await Promise.all(Array.from({ length: 12 }, (_, account) => at.create({ account })))
    const [first] = triggers
    const bad = triggers[7]
    if (bad === undefined || first === undefined) throw new Error('no triggers')
    // One shard, so that all of them share a batch.
    await execute(database.pool, 'update trigger_schedule set shard = 7 where trigger_id = any(:ids::uuid[])', {
      ids: triggers.map(({ id }) => id),
    })
    await execute(
      database.pool,
      `alter table sync_job_run_default add constraint spoiled check (trigger_id is distinct from '${bad.id}')`,
    )
    await clock.set('2031-01-01T00:00:00Z') // a day without a partition: the rows go where the constraint is
    await execute(
      database.pool,
      'update trigger_schedule set next_fire_at = :nextFireAt where trigger_id = any(:ids::uuid[])',
      {
        nextFireAt: new Date('2031-01-01T00:00:00Z'),
        ids: triggers.map(({ id }) => id),
      },
    )
    expect(await at.fire()).toMatchObject({ fired: 11, suspended: [{ triggerId: bad.id }] })
    expect(await at.ticksOf(bad.id)).toEqual([])
    expect(await at.ticksOf(first.id)).toEqual(['00:00:00'])
    await execute(database.pool, 'alter table sync_job_run_default drop constraint spoiled')
  })
})

describe('the ledger', () => {
  it('pages through every tick, latest first', async () => {
    const at = await bench()
    const { id } = await at.create()
    for (let tick = 0; tick < 7; tick++) {
      await clock.advance(10_000)
      await at.fire()
    }
    const seen: string[] = []
    let pageToken = ''
    do {
      const page = await listTicks(database.pool, at.tenant.environmentId, id, { pageSize: 3, pageToken })
      seen.push(...page.items.map((entry) => `${entry.scheduledFor.toISOString().slice(17, 19)} ${entry.outcome}`))
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    expect(seen).toEqual(['10 skipped', '00 skipped', '50 skipped', '40 skipped', '30 skipped', '20 fired', '10 fired'])
  })

  it('says of a skipped tick why, and of a fired one which run it made', async () => {
    const at = await bench()
    const { id } = await at.create()
    for (let tick = 0; tick < 3; tick++) {
      await clock.advance(10_000)
      await at.fire()
    }
    const [run] = await at.runsOf(id)
    const { items } = await listTicks(database.pool, at.tenant.environmentId, id, {})
    expect(items[0]).toMatchObject({ outcome: 'skipped', skipReason: 'overlap', runId: null })
    expect(items[2]).toMatchObject({ outcome: 'fired', runId: run?.id, skipReason: null })
  })

  it('of another environment’s trigger is not found', async () => {
    const at = await bench()
    const { id } = await at.create()
    await expect(listTicks(database.pool, newId(), id, {})).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
