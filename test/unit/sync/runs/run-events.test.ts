import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { Outcome } from '../../../../src/foundation/queue/index.ts'
import { retryRun, stopRun } from '../../../../src/sync/runs/index.ts'
import { runTriggerNow } from '../../../../src/sync/schedules/index.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from '../schedules/trigger-fixture.ts'

const { database, clock } = await clockedDatabase()
const ERROR = { reason: 'UPSTREAM_ERROR', message: 'it broke' }
const GROUP = 'warehouse'

interface Recorded {
  readonly type: string
  readonly subject: string
  readonly account: string
  readonly payload: JsonObject
  /** The webhook without a delivery of it. */
  readonly except: string | null
}

let at: TriggerFixture

beforeEach(async () => {
  await clearTriggers(database)
  await clock.set('2026-11-05T12:00:00Z')
  at = new TriggerFixture(database, await createTenant(database, 2), clock)
})

/** Changes what the destination asks for, which is the only webhook of the tenant at first. */
async function destinationAsksFor(eventTypes: readonly string[], isActive = true): Promise<void> {
  const { environmentId, webhookId } = at.tenant
  const change =
    'update webhook set event_types = :eventTypes, is_active = :isActive where environment_id = :environmentId and id = :webhookId'
  await execute(database.pool, change, { eventTypes, isActive, environmentId, webhookId })
}

async function addWebhook(eventTypes: readonly string[]): Promise<void> {
  const { environmentId, webhookId } = at.tenant
  await execute(
    database.pool,
    `insert into webhook select (jsonb_populate_record(w, jsonb_build_object('id', :id::uuid, 'event_types', :eventTypes::text[]))).*
     from webhook w where environment_id = :environmentId and id = :webhookId`,
    { id: newId(), eventTypes, environmentId, webhookId },
  )
}

async function recorded(): Promise<readonly Recorded[]> {
  const { environmentId } = at.tenant
  return await query(
    database.pool,
    `select e.type, e.subject_id as subject, e.integrated_account_id as account, e.payload, e.except_webhook_id as except
     from event e where e.environment_id = :environmentId order by e.id`,
    { environmentId },
  )
}

async function recordedTypes(): Promise<readonly string[]> {
  return (await recorded()).map(({ type }) => type.replace('sync_job_run:', ''))
}

async function claimOne() {
  const [run] = await at.claim()
  if (run === undefined) throw new Error('no run waits')
  return run
}

async function endWith(outcome: Outcome): Promise<void> {
  await at.queue.settle([{ ...(await claimOne()), outcome }])
}

async function fireOnce(): Promise<void> {
  await clock.advance(10_000)
  await at.fire()
}

describe('events of runs', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], ['created', 'started', 'completed']],
    [['*'], ['created', 'started', 'completed']],
    [['sync_job_run:*'], ['created', 'started', 'completed']],
    [['sync_job_run:c*'], ['created', 'completed']],
    [['sync_job_run:started', 'webhook:*'], ['started']],
    [['integrated_account:*', 'sync_job_cron_trigger:failed', 'sync_job_run'], []],
  ])('are recorded as a webhook asks for them: %j', async (eventTypes, types) => {
    await destinationAsksFor(['integrated_account:*'])
    await addWebhook(eventTypes)
    await at.create()
    await fireOnce()
    await endWith({ kind: 'completed' })
    expect(await recordedTypes()).toEqual(types)
  })

  it('are not recorded for a webhook that is turned off', async () => {
    await destinationAsksFor([], false)
    await at.create()
    await fireOnce()
    expect(await recorded()).toEqual([])
  })

  it('leave to the run what it sends its destination itself', async () => {
    await at.create()
    await fireOnce()
    await endWith({ kind: 'retry', error: ERROR, afterMs: 0 })
    await clock.advance(5_000)
    await endWith({ kind: 'completed' })
    expect(await recordedTypes()).toEqual(['created', 'updated', 'updated'])
    expect((await recorded()).map(({ except }) => except)).toEqual([null, null, null])
  })

  it('name the destination, so that it gets no second delivery of what the run sends', async () => {
    await addWebhook(['sync_job_run:*'])
    await at.create()
    await fireOnce()
    await endWith({ kind: 'failed', error: ERROR })
    const { webhookId } = at.tenant
    expect((await recorded()).map(({ type, except }) => [type, except])).toEqual([
      ['sync_job_run:created', null],
      ['sync_job_run:started', webhookId],
      ['sync_job_run:failed', webhookId],
    ])
  })

  it('say what the run is, whose it is and how it ended', async () => {
    await addWebhook(['sync_job_run:*'])
    const { id: triggerId } = await at.create({ args: { since: '2026' } })
    await fireOnce()
    await endWith({ kind: 'partially_completed' })
    const { syncJobId, accountIds } = at.tenant
    const [run] = await at.runsOf(triggerId)
    const fields = {
      id: run?.id,
      sync_job_id: syncJobId,
      trigger_id: triggerId,
      integrated_account_id: accountIds[0],
      tenant_id: 'acme',
      args: { since: '2026' },
      error_handling: 'ignore',
      scheduled_for: '2026-11-05T12:00:10.000Z',
      resource_stats: [],
    }
    const events = await recorded()
    expect(events.map(({ payload }) => payload)).toEqual([
      { ...fields, status: 'created', attempt: 0 },
      { ...fields, status: 'running', attempt: 1 },
      { ...fields, status: 'partially_completed', attempt: 1, complete: false },
    ])
    for (const { subject, account } of events) expect([subject, account]).toEqual([run?.id, accountIds[0]])
  })

  it('follow a run through a wait, a stop and a retry by hand, a lost lease and the last attempt', async () => {
    const { environmentId } = at.tenant
    const { id } = await at.create()
    const run = await database.transaction((tx) => runTriggerNow(at.deps, tx, environmentId, id))
    await endWith({ kind: 'rate_limited', afterMs: 60_000 })
    await database.transaction((tx) => stopRun(tx, environmentId, run.id))
    await database.transaction((tx) => retryRun(at.deps, tx, environmentId, run.id))
    for (let attempt = 1; attempt <= 6; attempt++) {
      await clock.advance(1)
      await claimOne()
      await clock.advance(31_000)
      await at.queue.reap()
    }
    const seen = (await recorded()).map(({ type, payload }) => [type.replace('sync_job_run:', ''), payload.status])
    // Claims are `updated` with `running`, leases that expire `updated` with `created`; the end excludes the destination.
    expect(seen.slice(0, 4)).toEqual([
      ['created', 'created'],
      ['rate_limited', 'rate_limited'],
      ['updated', 'stopped'],
      ['updated', 'created'],
    ])
    expect(new Set(seen.slice(4).map((each) => each.join()))).toEqual(new Set(['updated,running', 'updated,created']))
    expect(seen.slice(4)).toHaveLength(11)
  })

  it('are recorded for runs of daemons too, whose destination is no webhook', async () => {
    const { environmentId } = at.tenant
    await at.create({ destination: { kind: 'daemon', groupKey: GROUP } })
    await fireOnce()
    const group = `daemon:${environmentId}:${GROUP}`
    const [run] = await at.queue.claim({ group, holder: newId(), limit: 1 })
    await at.queue.settle([
      { id: run?.id ?? '', leaseId: run?.leaseId ?? '', attempt: 1, outcome: { kind: 'completed' } },
    ])
    expect(await recordedTypes()).toEqual(['created', 'started', 'completed'])
    expect((await recorded()).map(({ except }) => except)).toEqual([null, null, null])
  })

  it('are not recorded when the transaction of the change fails', async () => {
    const { environmentId } = at.tenant
    const { id } = await at.create()
    const failing = database.transaction(async (tx) => {
      await runTriggerNow(at.deps, tx, environmentId, id)
      throw new Error('the change failed')
    })
    await expect(failing).rejects.toThrow('the change failed')
    expect(await recorded()).toEqual([])
  })
})

describe('events of ticks', () => {
  it('tell of a tick that the account cannot take, with the run that records it', async () => {
    const { accountIds, syncJobId } = at.tenant
    const { id } = await at.create()
    await execute(
      database.pool,
      `update integrated_account set status = 'needs_reauth' where id = any(:accountIds::uuid[])`,
      {
        accountIds,
      },
    )
    await fireOnce()
    const [run] = await at.runsOf(id)
    const [created, failed] = await recorded()
    expect(created).toMatchObject({
      type: 'sync_job_run:created',
      subject: run?.id,
      payload: { status: 'skipped', skip_reason: 'account_needs_reauth' },
    })
    expect(failed).toEqual({
      type: 'sync_job_cron_trigger:failed',
      subject: id,
      account: accountIds[0],
      except: null,
      payload: {
        id,
        sync_job_id: syncJobId,
        integrated_account_id: accountIds[0],
        reason: 'account_needs_reauth',
        message: 'the tick was skipped: account needs reauth',
        scheduled_for: '2026-11-05T12:00:10.000Z',
        sync_job_run_id: run?.id,
      },
    })
  })

  it('call no overlap a failure', async () => {
    const { id } = await at.create()
    for (let tick = 0; tick < 3; tick++) await fireOnce()
    expect((await at.runsOf(id)).map(({ status }) => status)).toEqual(['created', 'created', 'skipped'])
    expect(await recordedTypes()).toEqual(['created', 'created', 'created'])
  })

  it('tell of a schedule that an error suspends, also when no webhook asks', async () => {
    await destinationAsksFor(['integrated_account:*'])
    const { id } = await at.create()
    await execute(database.pool, `update trigger_schedule set cron_expression = 'nonsense' where trigger_id = :id`, {
      id,
    })
    await fireOnce()
    expect(await recorded()).toMatchObject([
      { type: 'sync_job_cron_trigger:failed', subject: id, payload: { reason: 'suspended', sync_job_run_id: null } },
    ])
  })
})
