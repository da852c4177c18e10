import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import {
  deleteTrigger,
  getTrigger,
  listTriggers,
  pauseTrigger,
  previewTicks,
  resumeTrigger,
  runTriggerNow,
  type TriggerChange,
  type TriggerInput,
  updateTrigger,
} from '../../../../src/sync/schedules/index.ts'
import { beforeCommit, clockedDatabase } from '../../../support/database.ts'
import { createTenant, readOne } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from './trigger-fixture.ts'

const { database, clock } = await clockedDatabase()
const bench = async (accounts = 1) => {
  await clock.set('2026-11-05T12:00:00Z')
  return new TriggerFixture(database, await createTenant(database, accounts), clock)
}
beforeEach(() => clearTriggers(database))

/** The reason of the error. */
async function reasonOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => 'accepted',
    (error) => error.reason ?? error,
  )
}

async function countTriggers(): Promise<number> {
  return (await readOne<{ count: number }>(database, 'select count(*) as count from trigger_schedule')).count
}

describe('creating a trigger', () => {
  it('answers the trigger with its first tick', async () => {
    const at = await bench()
    const trigger = await at.create({ cronExpression: ' 0 9 * * MON ', args: { a: 1 } })
    expect(trigger).toMatchObject({
      cronExpression: ' 0 9 * * MON ',
      args: { a: 1 },
      areResourcesInherited: true,
      version: 1,
      isPaused: false,
      lastRunAt: null,
      lastRunStatus: null,
      nextRunAt: new Date('2026-11-09T09:00:00Z'),
      destination: { kind: 'webhook', webhookId: at.tenant.webhookId },
    })
    expect(await getTrigger(database.pool, at.tenant.environmentId, trigger.id)).toEqual(trigger)
  })

  it.each<[string, Partial<TriggerInput>, string]>([
    ['an unknown job', { syncJobId: newId() }, 'RESOURCE_NOT_FOUND'],
    ['an unknown account', { integratedAccountId: newId() }, 'RESOURCE_NOT_FOUND'],
    ['an unknown webhook', { destination: { kind: 'webhook', webhookId: newId() } }, 'WEBHOOK_NOT_FOUND'],
    ['no destination', { destination: undefined }, 'DESTINATION_REQUIRED'],
    ['a bad expression', { cronExpression: '* * * *' }, 'CRON_EXPRESSION_INVALID'],
  ])('is rejected for %s, and nothing is stored', async (_, input, reason) => {
    const at = await bench()
    expect(await reasonOf(at.create(input))).toBe(reason)
    expect(await countTriggers()).toBe(0)
  })

  it('is rejected for job, account and webhook of another environment exactly as for unknown ones', async () => {
    const at = await bench()
    const other = await createTenant(database)
    expect(await reasonOf(at.create({ syncJobId: other.syncJobId }))).toBe('RESOURCE_NOT_FOUND')
    expect(await reasonOf(at.create({ integratedAccountId: other.accountIds[0] ?? '' }))).toBe('RESOURCE_NOT_FOUND')
    const destination = { kind: 'webhook', webhookId: other.webhookId } as const
    expect(await reasonOf(at.create({ destination }))).toBe('WEBHOOK_NOT_FOUND')
  })

  it('is rejected when the account is one of another integration than the job is for', async () => {
    const at = await bench()
    await execute(database.pool, `update sync_job set integration_name = 'slack' where id = :syncJobId`, {
      syncJobId: at.tenant.syncJobId,
    })
    await expect(at.create()).rejects.toMatchObject({
      reason: 'INVALID_FIELD',
      violations: [{ field: 'integrated_account_id', rule: 'integration.mismatch' }],
    })
  })

  it('names every violation of expression and resources at once', async () => {
    const at = await bench()
    const checkResources = () => [
      { field: 'resources[0].depends_on', description: 'is unknown', rule: 'resources.parent' },
    ]
    Object.assign(at.deps, { checkResources })
    const resources = [{ resource: 'a', method: 'list', depends_on: 'b' }]
    await expect(at.create({ cronExpression: 'x', resources })).rejects.toMatchObject({
      reason: 'INVALID_FIELD',
      violations: [{ field: 'cron_expression' }, { field: 'resources[0].depends_on' }],
    })
    expect(await reasonOf(at.create({ resources }))).toBe('RESOURCES_INVALID')
  })
})

describe('updating a trigger', () => {
  const daemon = { kind: 'daemon', groupKey: 'warehouse' } as const

  async function withTrigger(input: Parameters<TriggerFixture['create']>[0] = {}) {
    const at = await bench()
    const trigger = await at.create(input)
    const { environmentId } = at.tenant
    const update = (change: TriggerChange) => updateTrigger(at.deps, environmentId, trigger.id, change)
    return { at, trigger, environmentId, update }
  }

  it('with a destination replaces the stored one of the other kind, and counts a version', async () => {
    const { trigger, update, at } = await withTrigger()
    const updated = await update({ destination: daemon })
    expect(updated).toMatchObject({ destination: daemon, version: 2, nextRunAt: trigger.nextRunAt })
    const back = await update({ destination: { kind: 'webhook', webhookId: at.tenant.webhookId } })
    expect(back).toMatchObject({ destination: trigger.destination, version: 3 })
  })

  it('with nothing changes nothing', async () => {
    const { trigger, update } = await withTrigger()
    expect(await update({})).toEqual(trigger)
  })

  it('with the expression it has moves nothing, not even a tick that is due', async () => {
    const { trigger, update, at } = await withTrigger()
    await clock.advance(25_000)
    expect(await update({ cronExpression: trigger.cronExpression })).toEqual(trigger)
    expect(await update({ cronExpression: trigger.cronExpression, destination: daemon })).toMatchObject({
      version: 2,
      nextRunAt: trigger.nextRunAt,
      destination: daemon,
    })
    await at.fire()
    expect(await at.ticksOf(trigger.id)).toEqual(['12:00:10', '12:00:20'])
  })

  it('with a new expression counts from now', async () => {
    const { trigger, update, at } = await withTrigger()
    await clock.advance(5_000)
    expect(await update({ cronExpression: '30 * * * *' })).toMatchObject({
      cronExpression: '30 * * * *',
      nextRunAt: new Date('2026-11-05T12:30:00Z'),
      version: 2,
    })
    await clock.advance(60_000)
    await at.fire()
    expect(await at.ticksOf(trigger.id)).toEqual([])
  })

  it('with a new expression still fires a tick that is due, under the old one and to the old destination', async () => {
    const { trigger, update, at } = await withTrigger()
    await clock.advance(10_000)
    await update({ cronExpression: '0 0 1 1 *', destination: daemon })
    expect(await at.runsOf(trigger.id)).toMatchObject([
      {
        scheduledFor: new Date('2026-11-05T12:00:10Z'),
        status: 'created',
        webhookId: at.tenant.webhookId,
        groupKey: null,
      },
    ])
    await clock.advance(60_000)
    await at.fire()
    expect(await at.ticksOf(trigger.id)).toHaveLength(1)
  })

  it('leaves runs that exist the destination they were created with', async () => {
    const { update, at } = await withTrigger()
    await clock.advance(10_000)
    await at.fire()
    await update({ destination: daemon })
    expect((await at.claim())[0]?.destination).toEqual({ kind: 'webhook', webhookId: at.tenant.webhookId })
  })

  it('of a paused trigger changes its expression and leaves it paused', async () => {
    const { trigger, environmentId, update, at } = await withTrigger()
    await database.transaction((tx) => pauseTrigger(at.deps, tx, environmentId, trigger.id))
    expect(await update({ cronExpression: '@hourly' })).toMatchObject({ isPaused: true, nextRunAt: null })
  })

  it('gives a suspended trigger a new start', async () => {
    const { trigger, update, at } = await withTrigger()
    await execute(database.pool, `update trigger_schedule set cron_expression = 'nonsense' where trigger_id = :id`, {
      id: trigger.id,
    })
    await clock.advance(10_000)
    await at.fire()
    const updated = await update({ cronExpression: '*/20 * * * * *' })
    expect(updated).toMatchObject({ error: null, nextRunAt: new Date('2026-11-05T12:00:20Z') })
  })

  it.each<[string, TriggerChange, string]>([
    ['another version', { destination: daemon, version: 7 }, 'ETAG_MISMATCH'],
    ['another version, with an expression', { cronExpression: '@hourly', version: 7 }, 'ETAG_MISMATCH'],
    ['another version and nothing to change', { version: 7 }, 'ETAG_MISMATCH'],
    ['an unknown webhook', { destination: { kind: 'webhook', webhookId: newId() } }, 'WEBHOOK_NOT_FOUND'],
    [
      'an unknown webhook beside a new expression',
      { cronExpression: '@hourly', destination: { kind: 'webhook', webhookId: newId() } },
      'WEBHOOK_NOT_FOUND',
    ],
    [
      'a bad expression beside a good destination',
      { cronExpression: '', destination: daemon },
      'CRON_EXPRESSION_INVALID',
    ],
  ])('is rejected for %s, and nothing is stored', async (_, change, reason) => {
    const { trigger, environmentId, update } = await withTrigger()
    expect(await reasonOf(update(change))).toBe(reason)
    expect(await getTrigger(database.pool, environmentId, trigger.id)).toEqual(trigger)
  })

  it('accepts the version that is stored', async () => {
    const { update } = await withTrigger()
    expect(await update({ cronExpression: '@hourly', version: 1 })).toMatchObject({ version: 2 })
    expect(await update({ destination: daemon, version: 2 })).toMatchObject({ version: 3 })
  })

  it('lets one of two updates with the same version through', async () => {
    const { update } = await withTrigger()
    const reasons = await Promise.all([
      reasonOf(update({ cronExpression: '@hourly', version: 1 })),
      reasonOf(update({ destination: daemon, version: 1 })),
      reasonOf(update({ cronExpression: '@daily', version: 1 })),
    ])
    expect(reasons.sort()).toEqual(['ETAG_MISMATCH', 'ETAG_MISMATCH', 'accepted'])
  })

  it('of another environment’s trigger is not found', async () => {
    const { trigger, at } = await withTrigger()
    const otherTenant = newId()
    expect(await reasonOf(updateTrigger(at.deps, otherTenant, trigger.id, { destination: daemon }))).toBe(
      'RESOURCE_NOT_FOUND',
    )
    expect(await reasonOf(updateTrigger(at.deps, otherTenant, trigger.id, { cronExpression: '@hourly' }))).toBe(
      'RESOURCE_NOT_FOUND',
    )
  })

  it('to another environment’s webhook is rejected', async () => {
    const { update } = await withTrigger()
    const { webhookId } = await createTenant(database)
    expect(await reasonOf(update({ destination: { kind: 'webhook', webhookId } }))).toBe('WEBHOOK_NOT_FOUND')
  })

  it('waits for a tick that is being fired, and loses neither', async () => {
    const { trigger, update, at } = await withTrigger()
    await clock.advance(10_000)
    let updated: Promise<unknown> = Promise.resolve()
    const meanwhile = beforeCommit(database, async () => {
      updated = update({ cronExpression: '*/15 * * * * *' })
      await new Promise((resolve) => setImmediate(resolve))
    })
    await at.fire({ database: meanwhile })
    await updated
    await clock.advance(5_000)
    await at.fire()
    expect(await at.ticksOf(trigger.id)).toEqual(['12:00:10', '12:00:15'])
  })
})

describe('pausing and resuming', () => {
  it('makes the schedule stand still, and lets it go on from now', async () => {
    const at = await bench()
    const { environmentId } = at.tenant
    const { id } = await at.create()
    const paused = await database.transaction((tx) => pauseTrigger(at.deps, tx, environmentId, id))
    expect(paused).toMatchObject({ isPaused: true, nextRunAt: null })
    await clock.advance(600_000)
    await at.fire()
    const resumed = await database.transaction((tx) => resumeTrigger(at.deps, tx, environmentId, id))
    expect(resumed).toMatchObject({ isPaused: false, nextRunAt: new Date('2026-11-05T12:10:10Z') })
    await clock.advance(10_000)
    await at.fire()
    expect(await at.ticksOf(id)).toEqual(['12:10:10'])
  })

  it('fires what is due when the pause arrives', async () => {
    const at = await bench()
    const { id } = await at.create()
    await clock.advance(10_000)
    await database.transaction((tx) => pauseTrigger(at.deps, tx, at.tenant.environmentId, id))
    expect(await at.ticksOf(id)).toEqual(['12:00:10'])
  })

  it('twice is the same as once', async () => {
    const at = await bench()
    const { environmentId } = at.tenant
    const { id } = await at.create()
    const pause = () => database.transaction((tx) => pauseTrigger(at.deps, tx, environmentId, id))
    const resume = () => database.transaction((tx) => resumeTrigger(at.deps, tx, environmentId, id))
    expect(await pause()).toEqual(await pause())
    const resumed = await resume()
    await clock.advance(5_000)
    expect(await resume()).toEqual(resumed)
  })
})

describe('running a trigger now', () => {
  it('makes a manual run beside the schedule, also while paused', async () => {
    const at = await bench()
    const { environmentId } = at.tenant
    const { id } = await at.create({ args: { a: 1 } })
    await database.transaction((tx) => pauseTrigger(at.deps, tx, environmentId, id))
    const run = await database.transaction((tx) => runTriggerNow(at.deps, tx, environmentId, id))
    expect(run).toMatchObject({ kind: 'manual', triggerId: id, status: 'created', args: { a: 1 }, attempt: 0 })
    expect(run.resources).toEqual([{ resource: 'repos', method: 'list' }])
    expect((await at.claim())[0]?.id).toBe(run.id)
    expect(await getTrigger(database.pool, environmentId, id)).toMatchObject({ lastRunStatus: 'running' })
  })

  it('twice in a millisecond makes two runs', async () => {
    const at = await bench()
    const { id } = await at.create()
    const runNow = () => database.transaction((tx) => runTriggerNow(at.deps, tx, at.tenant.environmentId, id))
    const runs = await Promise.all([runNow(), runNow(), runNow()])
    expect(new Set(runs.map(({ scheduledFor }) => scheduledFor.getTime())).size).toBe(3)
  })

  it('is rejected when the account or the integration would not run, and nothing is stored', async () => {
    const at = await bench()
    const { id } = await at.create()
    const runNow = () => database.transaction((tx) => runTriggerNow(at.deps, tx, at.tenant.environmentId, id))
    await execute(
      database.pool,
      `update integrated_account set status = 'needs_reauth' where environment_id = :environmentId`,
      { environmentId: at.tenant.environmentId },
    )
    expect(await reasonOf(runNow())).toBe('ACCOUNT_NOT_ACTIVE')
    await execute(
      database.pool,
      'update environment_integration set is_enabled = false where environment_id = :environmentId',
      { environmentId: at.tenant.environmentId },
    )
    expect(await reasonOf(runNow())).toBe('INTEGRATION_DISABLED')
    expect(await at.runsOf(id)).toEqual([])
  })
})

describe('reading triggers', () => {
  it('lists newest first, by job and account, page by page', async () => {
    const at = await bench(2)
    const { environmentId, syncJobId, accountIds } = at.tenant
    const created = []
    for (const account of [0, 1, 0]) created.push((await at.create({ account })).id)
    const list = async (filter: object, before?: string) =>
      (await listTriggers(database.pool, environmentId, filter, { before, limit: 2 })).map(({ id }) => id)
    const [first, second, third] = created
    expect(await list({})).toEqual([third, second])
    expect(await list({}, second)).toEqual([first])
    expect(await list({ integratedAccountId: accountIds[0] })).toEqual([third, first])
    expect(await list({ syncJobId, integratedAccountId: accountIds[1] })).toEqual([second])
    expect(await list({ syncJobId: newId() })).toEqual([])
  })

  it('shows the latest run and its status', async () => {
    const at = await bench()
    const { id } = await at.create()
    const status = async () => (await getTrigger(database.pool, at.tenant.environmentId, id)).lastRunStatus
    await clock.advance(10_000)
    await at.fire()
    expect(await status()).toBe('created')
    const [run] = await at.claim()
    if (run === undefined) throw new Error('no run')
    expect(await status()).toBe('running')
    await at.queue.settle([{ ...run, outcome: { kind: 'failed', error: { reason: 'X', message: 'x' } } }])
    expect(await status()).toBe('failed')
  })

  it('previews an expression without storing anything', () => {
    const deps = { minTickGapSeconds: 1, clock: { now: () => new Date('2026-11-05T12:00:00Z') } }
    const ticks = previewTicks(deps, '0 */6 * * *', { count: 2 })
    expect(ticks).toEqual([new Date('2026-11-05T18:00:00Z'), new Date('2026-11-06T00:00:00Z')])
    expect(previewTicks(deps, '@hourly', {})).toHaveLength(5)
    expect(() => previewTicks(deps, '@reboot', {})).toThrow('CRON_EXPRESSION_INVALID')
  })
})

describe('deleting a trigger', () => {
  it('takes schedule and missed stretches with it and leaves its runs', async () => {
    const at = await bench()
    const { environmentId } = at.tenant
    const { id } = await at.create({ cronExpression: '0 * * * *' })
    await clock.advance(8 * 3_600_000)
    await at.fire()
    await deleteTrigger(database.pool, environmentId, id, undefined)
    expect(await reasonOf(getTrigger(database.pool, environmentId, id))).toBe('RESOURCE_NOT_FOUND')
    expect(await countTriggers()).toBe(0)
    expect(await readOne(database, 'select count(*) as count from missed_ticks')).toEqual({ count: 0 })
    const [run] = await at.claim()
    expect(run).toMatchObject({ triggerId: id })
    if (run !== undefined) await at.queue.settle([{ ...run, outcome: { kind: 'completed' } }])
  })

  it('is rejected for another version and for another environment', async () => {
    const at = await bench()
    const { id } = await at.create()
    expect(await reasonOf(deleteTrigger(database.pool, at.tenant.environmentId, id, 9))).toBe('ETAG_MISMATCH')
    expect(await reasonOf(deleteTrigger(database.pool, newId(), id, undefined))).toBe('RESOURCE_NOT_FOUND')
    expect(await countTriggers()).toBe(1)
  })
})
