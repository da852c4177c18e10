import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { ensureDayPartitions } from '../../../../src/foundation/database/day-partition.ts'
import { type DayTable, execute, jsonb } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { Lease, Outcome } from '../../../../src/foundation/queue/index.ts'
import {
  type CreateRunDeps,
  createRun,
  getRun,
  listRuns,
  type QueuedRun,
  type ResourceStats,
  RUN_DAY_TABLES,
  type RunInput,
  RunQueue,
  retryRun,
  stopRun,
} from '../../../../src/sync/runs/index.ts'
import { queueGroupOf, type Run, WEBHOOK_QUEUE_GROUP } from '../../../../src/sync/runs/run.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant, readOne, type Tenant } from '../../../support/tenant.ts'

const { database, clock } = await clockedDatabase()
const STATS: ResourceStats = {
  resource: 'repos',
  method: 'list',
  pages: 1,
  fetched: 100,
  delivered: 100,
  failed: 0,
  complete: false,
}
const FAILURE = { reason: 'UPSTREAM_ERROR', message: 'it broke' }

let tenant: Tenant
let queue: RunQueue
let deps: CreateRunDeps

beforeEach(async () => {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease, run_checkpoint, previous_run')
  tenant = await createTenant(database, 3)
  await clock.set('2026-11-05T12:00:00Z')
  queue = new RunQueue({ database, random: () => 0.5 })
  deps = { queue, assertMapped: async () => undefined, resolveArgs: async (_, given) => ({ ...given, limit: 10 }) }
})

async function create(input: Partial<RunInput> & { readonly account?: number } = {}): Promise<Run> {
  const { account = 0, ...given } = input
  const { environmentId, syncJobId, webhookId, accountIds } = tenant
  const defaults: RunInput = {
    syncJobId,
    integratedAccountId: accountIds[account] ?? '',
    destination: { kind: 'webhook', webhookId },
  }
  return await database.transaction((tx) => createRun(deps, tx, environmentId, { ...defaults, ...given }))
}

async function claimOne() {
  const [run] = await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })
  if (run === undefined) throw new Error('nothing to claim')
  return run
}

const read = (id: string) => getRun(database.pool, tenant.environmentId, id)
const stop = (id: string) => database.transaction((tx) => stopRun(tx, tenant.environmentId, id))
const retry = (id: string) => database.transaction((tx) => retryRun(deps, tx, tenant.environmentId, id))

async function reasonOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => 'accepted',
    (error) => error.reason ?? error,
  )
}

describe('creating a run', () => {
  it('copies the job and lets it wait', async () => {
    const run = await create({ args: { since: 'x' } })
    expect(run).toMatchObject({
      kind: 'manual',
      triggerId: null,
      status: 'created',
      attempt: 0,
      errorHandling: 'ignore',
      version: 1,
      args: { since: 'x', limit: 10 },
      resources: [{ resource: 'repos', method: 'list' }],
      scheduledFor: clock.now(),
      startedAt: null,
      finishedAt: null,
      resourceStats: [],
      error: null,
    })
    expect(await read(run.id)).toMatchObject(run)
    expect(await claimOne()).toMatchObject({ id: run.id, attempt: 1, args: run.args })
  })

  it('keeps what the job changes later away from it', async () => {
    const { id } = await create()
    await execute(database.pool, `update sync_job set resources = '[]' where id = :syncJobId`, {
      syncJobId: tenant.syncJobId,
    })
    expect((await claimOne()).resources).toEqual((await read(id)).resources)
  })

  it('for a daemon group is claimed by that group alone', async () => {
    const destination = { kind: 'daemon', groupKey: 'warehouse' } as const
    const { id } = await create({ destination })
    expect(await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })).toEqual([])
    const foreign = queueGroupOf(newId(), destination)
    expect(await queue.claim({ group: foreign, holder: 'daemon', limit: 1 })).toEqual([])
    const group = queueGroupOf(tenant.environmentId, destination)
    expect(await queue.claim({ group, holder: 'daemon', limit: 1 })).toMatchObject([{ id, destination }])
  })

  it.each<[string, Partial<RunInput>, string]>([
    ['an unknown job', { syncJobId: newId() }, 'RESOURCE_NOT_FOUND'],
    ['an unknown account', { integratedAccountId: newId() }, 'RESOURCE_NOT_FOUND'],
    ['an unknown webhook', { destination: { kind: 'webhook', webhookId: newId() } }, 'WEBHOOK_NOT_FOUND'],
    ['no destination', { destination: undefined }, 'DESTINATION_REQUIRED'],
  ])('is rejected for %s, and nothing is stored', async (_, input, reason) => {
    expect(await reasonOf(create(input))).toBe(reason)
    expect((await listRuns(database.pool, tenant.environmentId, {}, {})).items).toEqual([])
  })

  it('is rejected when ten thousand runs wait', async () => {
    await execute(
      database.pool,
      `insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, fair_rank,
         available_at, attempt)
       select gen_random_uuid(), now(), :environmentId, gen_random_uuid(), 'wnam', 'webhook', 1, now(), 0 from generate_series(1, 10000)`,
      { environmentId: tenant.environmentId },
    )
    expect(await reasonOf(create())).toBe('GROUP_FULL')
  })
})

describe('progress', () => {
  it('is read while the run runs, and every save is a new version', async () => {
    const { id } = await create()
    const lease = await claimOne()
    await queue.save(lease, { page: 1 }, [STATS])
    const first = await read(id)
    await queue.save(lease, { page: 2 }, [{ ...STATS, pages: 2 }])
    const second = await read(id)
    expect(second).toMatchObject({ status: 'running', resourceStats: [{ pages: 2 }] })
    expect(second.version).toBeGreaterThan(first.version)
  })

  it('renews the lease with the checkpoint', async () => {
    await create()
    const lease = await claimOne()
    await clock.advance(29_000)
    await queue.save(lease, {}, [])
    await clock.advance(29_000)
    expect(await queue.reap()).toBe(0)
  })

  it('of a holder whose lease another holder has is rejected and stores nothing', async () => {
    const { id } = await create()
    const stale = await claimOne()
    await queue.save(stale, { page: 1 }, [STATS])
    await clock.advance(30_000)
    await queue.reap()
    const fresh = await claimOne()
    expect(fresh).toMatchObject({ attempt: 2, checkpoint: { page: 1 }, resourceStats: [{ pages: 1 }] })
    expect(await reasonOf(queue.save(stale, { page: 9 }, []))).toBe('LEASE_LOST')
    expect((await read(id)).resourceStats).toEqual([STATS])
  })

  it('stays with the run when it completes, and its checkpoint goes', async () => {
    const { id } = await create()
    const lease = await claimOne()
    await queue.save(lease, { page: 1 }, [STATS])
    const { version } = await read(id)
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    const done = await read(id)
    expect(done).toMatchObject({ status: 'completed', resourceStats: [STATS], finishedAt: clock.now() })
    expect(done.version).toBeGreaterThan(version)
    expect(await readOne(database, 'select count(*) as count from run_checkpoint')).toEqual({ count: 0 })
  })

  it('says that a stop was asked for', async () => {
    const { id } = await create()
    const lease = await claimOne()
    expect(await queue.save(lease, {}, [])).toEqual({ isStopRequested: false })
    await stop(id)
    expect(await queue.save(lease, {}, [])).toEqual({ isStopRequested: true })
  })
})

describe('an incremental sync', () => {
  const LATER = new Date('2026-11-05T11:58:00Z')
  const run = async (input: Parameters<typeof create>[0] = {}) => {
    await create(input)
    return await claimOne()
  }
  /** Ends a run of which some resources, by index, are complete. */
  const finish = async (
    lease: Lease<QueuedRun>,
    complete: readonly number[],
    outcome: Outcome = { kind: 'completed' },
  ) => {
    const stats = lease.resources.map(({ resource, method }, index) => ({
      resource: String(resource),
      method: String(method),
      pages: 1,
      fetched: 1,
      delivered: 1,
      failed: 0,
      complete: complete.includes(index),
    }))
    await queue.save(lease, null, stats)
    await queue.settle([{ ...lease, outcome }])
  }
  const useResources = (resources: readonly JsonObject[]) =>
    execute(database.pool, 'update sync_job set resources = :resources::jsonb', { resources: jsonb(resources) })
  const list = (resource: string, more: JsonObject = {}) => ({ resource, method: 'list', ...more })

  it('begins two minutes before the start of the last run that read everything', async () => {
    const first = await run()
    expect(first.previousRunDates).toEqual([null])
    await clock.advance(60_000)
    await finish(first, [0])
    await clock.advance(3_600_000)
    const second = await run()
    expect(second.previousRunDates).toEqual([LATER])
    await finish(second, [0], { kind: 'failed', error: FAILURE })
    expect((await run()).previousRunDates).toEqual([LATER])
  })

  it('begins earlier by the look-back of the resource, whose change reads nothing anew', async () => {
    await useResources([list('a', { look_back_seconds: 3_600 }), list('b')])
    await finish(await run(), [0, 1])
    const earlier = (seconds: number) => new Date(LATER.getTime() - seconds * 1_000)
    const second = await run()
    expect(second.previousRunDates).toEqual([earlier(3_600), earlier(0)])
    await queue.settle([{ ...second, outcome: { kind: 'stopped' } }])
    await useResources([list('a', { look_back_seconds: 60 }), list('b')])
    expect((await run()).previousRunDates).toEqual([earlier(60), earlier(0)])
  })

  it('is full when it is asked to be, and for another account', async () => {
    await finish(await run(), [0])
    expect((await run({ account: 1 })).previousRunDates).toEqual([null])
    expect((await run({ ignorePreviousRun: true })).previousRunDates).toEqual([null])
  })

  it('moves the date of a resource that was read, and not of one that was not', async () => {
    await useResources([list('a'), list('b')])
    await finish(await run(), [1], { kind: 'partially_completed' })
    expect((await run()).previousRunDates).toEqual([null, LATER])
  })

  it('moves no date when the counters are not there', async () => {
    await queue.settle([{ ...(await run()), outcome: { kind: 'completed' } }])
    expect((await run()).previousRunDates).toEqual([null])
  })

  it.each<[string, readonly number[], readonly (Date | null)[]]>([
    ['children are missing: their parents', [0, 2, 3], [null, null, LATER, LATER]],
    ['parents are missing: their children', [1, 2, 3], [null, null, null, LATER]],
    ['something else is missing: nothing', [0, 1, 2], [LATER, LATER, LATER, null]],
  ])('keeps, besides its own, the dates that depend on it when %s', async (_, complete, dates) => {
    const below = { depends_on: 'parents' }
    await useResources([list('parents'), list('children', below), list('others', below), list('elsewhere')])
    await finish(await run(), complete, { kind: 'partially_completed' })
    expect((await run()).previousRunDates).toEqual(dates)
  })

  it.each<[string, () => Promise<unknown>, Parameters<typeof create>[0]]>([
    ['the query is another', () => useResources([list('repos', { query: { state: 'all' } })]), {}],
    ['it is persisted from now on', () => useResources([list('repos', { persist: true })]), {}],
    ['the arguments, such as elements of loop_on, are others', async () => {}, { args: { ids: [1, 2] } }],
    ['the destination is another', async () => {}, { destination: { kind: 'daemon', groupKey: 'own' } }],
  ])('begins anew when %s', async (_, change, input) => {
    await finish(await run(), [0])
    await change()
    const { destination } = await create(input)
    const group = queueGroupOf(tenant.environmentId, destination)
    expect(await queue.claim({ group, holder: 'anyone', limit: 1 })).toMatchObject([{ previousRunDates: [null] }])
  })

  it('continues when another resource of the job changes', async () => {
    await useResources([list('a'), list('b')])
    await finish(await run(), [0, 1])
    await useResources([list('c'), list('b'), list('a')])
    expect((await run()).previousRunDates).toEqual([null, LATER, LATER])
  })

  it('never goes back when an old run ends late', async () => {
    const { id } = await create()
    const first = await claimOne()
    await finish(first, [], { kind: 'failed', error: FAILURE })
    await clock.advance(3_600_000)
    await finish(await run(), [0])
    await retry(id)
    await finish(await claimOne(), [0])
    expect((await run()).previousRunDates).toEqual([new Date(LATER.getTime() + 3_600_000)])
  })
})

describe('stopping a run', () => {
  it('that waits ends it at once, and twice is the same as once', async () => {
    const { id } = await create()
    expect(await stop(id)).toMatchObject({ status: 'stopped', finishedAt: clock.now() })
    expect(await stop(id)).toMatchObject({ status: 'stopped' })
    expect(await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })).toEqual([])
  })

  it('that waits for a rate limit ends it too', async () => {
    const { id } = await create()
    const lease = await claimOne()
    await queue.settle([{ ...lease, outcome: { kind: 'rate_limited', afterMs: 60_000 } }])
    expect(await stop(id)).toMatchObject({ status: 'stopped' })
  })

  it('that runs asks its holder', async () => {
    const { id } = await create()
    const lease = await claimOne()
    expect(await stop(id)).toMatchObject({ status: 'running' })
    expect(await queue.heartbeat([lease])).toMatchObject([{ isStopRequested: true }])
    await queue.settle([{ ...lease, outcome: { kind: 'stopped' } }])
    expect(await read(id)).toMatchObject({ status: 'stopped' })
  })

  it.each(['completed', 'failed'] as const)('that %s is rejected', async (kind) => {
    const { id } = await create()
    await queue.settle([{ ...(await claimOne()), outcome: { kind, error: FAILURE } }])
    expect(await reasonOf(stop(id))).toBe('RUN_STATE_CONFLICT')
  })

  it('that is claimed at the same moment ends it or asks its holder', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await create()
      const [claimed, stopped] = await Promise.all([
        queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 }),
        stop(id),
      ])
      const [lease] = claimed
      if (lease === undefined) expect(stopped.status).toBe('stopped')
      else {
        expect(await queue.heartbeat([lease])).toMatchObject([{ kind: 'held', isStopRequested: true }])
        await queue.settle([{ ...lease, outcome: { kind: 'stopped' } }])
      }
    }
  })

  it('of another environment is not found', async () => {
    const { id } = await create()
    const otherTenant = database.transaction((tx) => stopRun(tx, newId(), id))
    expect(await reasonOf(otherTenant)).toBe('RESOURCE_NOT_FOUND')
    expect(await read(id)).toMatchObject({ status: 'created' })
  })
})

describe('the runs of one account', () => {
  it('go on while one waits for its next attempt, which comes after them', async () => {
    const ids: string[] = []
    for (let made = 0; made < 5; made++) ids.push((await create()).id)
    const hanging = await claimOne()
    await queue.settle([{ ...hanging, outcome: { kind: 'retry', error: FAILURE } }])
    await clock.advance(20_000)
    const order: string[] = []
    for (const _ of ids) {
      const lease = await claimOne()
      order.push(lease.id)
      await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    }
    expect(order).toEqual([...ids.slice(1), ids[0]])
  })
})

describe('a run that fails again and again', () => {
  /** Claims, saves what is given, and fails in a way that passes. @returns the status afterwards */
  async function failAfter(pages: number): Promise<string> {
    await clock.advance(15 * 60_000)
    const lease = await claimOne()
    await queue.save(lease, { page: pages }, [{ ...STATS, pages }])
    await queue.settle([{ ...lease, outcome: { kind: 'retry', error: FAILURE } }])
    return (await read(lease.id)).status
  }

  it('gets all its attempts once more whenever it has made progress', async () => {
    const { id } = await create()
    for (let page = 1; page <= 20; page++) expect(await failAfter(page)).toBe('created')
    expect(await read(id)).toMatchObject({ status: 'created', attempt: 20 })
  })

  it('without progress fails after five attempts, however much it saves', async () => {
    await create()
    for (let page = 1; page <= 3; page++) await failAfter(page)
    const statuses = [await failAfter(3), await failAfter(3), await failAfter(3), await failAfter(3)]
    expect(statuses).toEqual(['created', 'created', 'created', 'failed'])
  })

  it('by losing its holders counts the progress they saved', async () => {
    const { id } = await create()
    for (let page = 1; page <= 7; page++) {
      const lease = await claimOne()
      await queue.save(lease, { page }, [{ ...STATS, pages: page }])
      await clock.advance(30_000)
      await queue.reap()
    }
    expect(await claimOne()).toMatchObject({ id, attempt: 8, attemptsMax: 11 })
  })

  it('never gives an attempt number to two holders, though it is retried by hand', async () => {
    const { id } = await create()
    for (const attempt of [1, 2, 3]) {
      const lease = await claimOne()
      expect(lease.attempt).toBe(attempt)
      await queue.settle([{ ...lease, outcome: { kind: 'failed', error: FAILURE } }])
      await retry(id)
    }
  })
})

describe('a run whose ending is decided', () => {
  const ending = { status: 'completed', error: null, attempt: 1, decidedAt: '2026-11-05T12:00:00.000Z' } as const

  it('ends so although it was to stop, when its holder is lost', async () => {
    const { id } = await create()
    await queue.save(await claimOne(), {}, [STATS], ending)
    await stop(id)
    await clock.advance(30_000)
    await queue.reap()
    expect(await read(id)).toMatchObject({ status: 'completed', error: null, finishedAt: clock.now() })
  })

  it('ends so when its holders are lost one after another', async () => {
    const { id } = await create()
    await queue.save(await claimOne(), {}, [STATS], ending)
    for (let holders = 1; holders <= 6; holders++) {
      await clock.advance(30_000)
      await queue.reap()
      if (holders < 6) expect(await claimOne()).toMatchObject({ id, ending })
    }
    expect(await read(id)).toMatchObject({ status: 'completed', error: null, finishedAt: clock.now() })
  })
})

describe('retrying a run', () => {
  it('lets a failed one go on from its checkpoint with a full set of attempts', async () => {
    const { id } = await create()
    const lease = await claimOne()
    await queue.save(lease, { page: 3 }, [STATS])
    await queue.settle([{ ...lease, outcome: { kind: 'failed', error: FAILURE } }])
    expect(await read(id)).toMatchObject({ status: 'failed', error: FAILURE, resourceStats: [STATS] })
    expect(await retry(id)).toMatchObject({ status: 'created', error: null, attempt: 1, finishedAt: null })
    expect(await claimOne()).toMatchObject({ id, attempt: 2, attemptsMax: 6, checkpoint: { page: 3 } })
  })

  it('lets a stopped one go on', async () => {
    const { id } = await create()
    await stop(id)
    expect(await retry(id)).toMatchObject({ status: 'created' })
    expect(await claimOne()).toMatchObject({ id })
  })

  it('is rejected in any other status', async () => {
    const { id } = await create()
    expect(await reasonOf(retry(id))).toBe('RUN_STATE_CONFLICT')
    const lease = await claimOne()
    expect(await reasonOf(retry(id))).toBe('RUN_STATE_CONFLICT')
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    expect(await reasonOf(retry(id))).toBe('RUN_STATE_CONFLICT')
  })

  it('says what reads again what a run passed over', async () => {
    const { id } = await create()
    await queue.settle([{ ...(await claimOne()), outcome: { kind: 'partially_completed' } }])
    await expect(retry(id)).rejects.toThrow('the next run of the job for the account reads again what it passed over')
  })

  it('by two callers at the same moment lets it wait once', async () => {
    const { id } = await create()
    await stop(id)
    const reasons = await Promise.all([reasonOf(retry(id)), reasonOf(retry(id))])
    expect(reasons.sort()).toEqual(['RUN_STATE_CONFLICT', 'accepted'])
  })

  it('is rejected while the account would not run', async () => {
    const { id } = await create()
    await stop(id)
    await execute(
      database.pool,
      `update integrated_account set status = 'connecting' where environment_id = :environmentId`,
      { environmentId: tenant.environmentId },
    )
    expect(await reasonOf(retry(id))).toBe('ACCOUNT_NOT_ACTIVE')
  })
})

describe('listing runs', () => {
  it('shows newest first, page by page, each run once', async () => {
    const ids: string[] = []
    for (let round = 0; round < 5; round++) {
      ids.unshift((await create({ account: round % 3 })).id)
      await clock.advance(1000)
    }
    const seen: string[] = []
    let pageToken = ''
    do {
      const page = await listRuns(database.pool, tenant.environmentId, {}, { pageSize: 2, pageToken })
      seen.push(...page.items.map(({ id }) => id))
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    expect(seen).toEqual(ids)
  })

  it('combines its filters with and', async () => {
    const [a, b] = [await create({ account: 0 }), await create({ account: 1 })]
    await stop(b.id)
    const list = async (filter: Parameters<typeof listRuns>[2]) =>
      (await listRuns(database.pool, tenant.environmentId, filter, {})).items.map(({ id }) => id)
    expect(await list({ status: 'stopped' })).toEqual([b.id])
    expect(await list({ integratedAccountId: tenant.accountIds[0], syncJobId: tenant.syncJobId })).toEqual([a.id])
    expect(await list({ integratedAccountId: tenant.accountIds[0], status: 'stopped' })).toEqual([])
    expect(await list({ triggerId: newId() })).toEqual([])
  })

  it('rejects the page token of another query', async () => {
    for (let round = 0; round < 2; round++) await create({ account: round })
    const { nextPageToken } = await listRuns(database.pool, tenant.environmentId, {}, { pageSize: 1 })
    const other = listRuns(
      database.pool,
      tenant.environmentId,
      { status: 'created' },
      { pageSize: 1, pageToken: nextPageToken },
    )
    expect(await reasonOf(other)).toBe('PAGE_TOKEN_INVALID')
  })
})

describe('the days of the runs', () => {
  const [runDays] = RUN_DAY_TABLES as [DayTable]
  const day = (text: string) => new Date(`${text}T15:00:00Z`)
  const ensure = (text: string, days: number) =>
    database.transaction((tx) => ensureDayPartitions(tx, runDays, day(text), days))

  it('get their partitions ahead, once, however many workers maintain them', async () => {
    const made = await Promise.all([ensure('2031-02-27', 4), ensure('2031-02-27', 4), ensure('2031-02-28', 4)])
    expect(made.flat().sort()).toEqual([
      'sync_job_run_20310227',
      'sync_job_run_20310228',
      'sync_job_run_20310301',
      'sync_job_run_20310302',
      'sync_job_run_20310303',
    ])
    await clock.set('2031-02-28T23:59:59.999Z')
    const { id } = await create()
    const found = await readOne(database, 'select tableoid::regclass::text as name from sync_job_run where id = :id', {
      id,
    })
    expect(found).toEqual({ name: 'sync_job_run_20310228' })
  })

  it('that have runs without a partition keep them where they are', async () => {
    await clock.set('2032-05-05T10:00:00Z')
    const { id } = await create()
    expect(await ensure('2032-05-04', 3)).toEqual(['sync_job_run_20320504', 'sync_job_run_20320506'])
    expect(await read(id)).toMatchObject({ status: 'created' })
  })
})
