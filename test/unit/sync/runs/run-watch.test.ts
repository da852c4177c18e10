import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import {
  type CreateRunDeps,
  createRun,
  type ResourceStats,
  RunQueue,
  RunWatch,
  touchWorker,
} from '../../../../src/sync/runs/index.ts'
import { type Run, WEBHOOK_QUEUE_GROUP } from '../../../../src/sync/runs/run.ts'
import { testDatabase } from '../../../support/database.ts'
import { type ManualClock, manualClock } from '../../../support/manual-clock.ts'
import { createTenant, type Tenant } from '../../../support/tenant.ts'

const POLL_MS = 500
const HOUR_MS = 3_600_000
const STATS: ResourceStats = {
  resource: 'repos',
  method: 'list',
  pages: 1,
  fetched: 100,
  delivered: 100,
  failed: 0,
  complete: false,
}

const { database } = await testDatabase()
let statements: string[] = []
database.pool.on('query', ({ sql }: { sql: string }) => statements.push(sql))

let tenant: Tenant
let clock: ManualClock
let watch: RunWatch
let aborter: AbortController
const queue = new RunQueue({ database, random: () => 0.5 })
const deps: CreateRunDeps = {
  queue,
  assertMapped: async () => undefined,
  resolveArgs: async (_, given) => given,
}

beforeEach(async () => {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease, run_checkpoint')
  tenant = await createTenant(database, 2)
  clock = manualClock(new Date())
  watch = new RunWatch({ database, clock })
  aborter = new AbortController()
  statements = []
})
afterEach(() => aborter.abort())

async function create(of = tenant): Promise<Run> {
  const { environmentId, syncJobId, webhookId, accountIds } = of
  const input = { syncJobId, integratedAccountId: accountIds[0] ?? '' }
  const destination = { kind: 'webhook', webhookId } as const
  return await database.transaction((tx) => createRun(deps, tx, environmentId, { ...input, destination }))
}

async function claim() {
  const [lease] = await queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })
  if (lease === undefined) throw new Error('nothing to claim')
  return lease
}

const follow = ({ id, environmentId }: Run, signal = aborter.signal) => watch.watch(environmentId, id, signal)
const polls = () => statements.filter((sql) => sql.includes('c.saves') && sql.includes('unnest'))

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = []
  for await (const item of items) collected.push(item)
  return collected
}

/** The watcher's next answer, once a poll has passed. */
async function nextPoll(watcher: AsyncGenerator<Run | undefined>): Promise<Run | undefined> {
  const next = watcher.next()
  await clock.pass(POLL_MS)
  return (await next).value
}

async function reasonOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => 'accepted',
    (error) => error.reason ?? error,
  )
}

describe('a watcher', () => {
  it('gets the run as it is, every step of its progress, and its end', async () => {
    const run = await create()
    const watcher = follow(run)
    expect((await watcher.next()).value).toMatchObject(run)
    const lease = await claim()
    expect(await nextPoll(watcher)).toMatchObject({ status: 'running', resourceStats: [] })
    await queue.save(lease, {}, [STATS])
    expect(await nextPoll(watcher)).toMatchObject({ resourceStats: [{ fetched: 100 }] })
    await queue.save(lease, {}, [{ ...STATS, fetched: 200 }])
    expect(await nextPoll(watcher)).toMatchObject({ status: 'running', resourceStats: [{ fetched: 200 }] })
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    expect(await nextPoll(watcher)).toMatchObject({ status: 'completed', resourceStats: [{ fetched: 200 }] })
    expect(await watcher.next()).toEqual({ done: true, value: undefined })
  })

  it('gets the run when what it waits for changes', async () => {
    const [first, second] = [await create(), await create()]
    await touchWorker(database.pool, 'worker', [])
    const watcher = follow(second)
    expect((await watcher.next()).value).toMatchObject({ waiting: { reason: 'capacity' } })
    const lease = await claim()
    const waiting = { reason: 'account_busy', blockingRunId: first.id }
    expect(await nextPoll(watcher)).toMatchObject({ status: 'created', version: second.version, waiting })
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    expect(await nextPoll(watcher)).toMatchObject({ waiting: { reason: 'capacity' } })
    await claim()
    const running = await nextPoll(watcher)
    expect(running).toMatchObject({ status: 'running' })
    expect(running).not.toHaveProperty('waiting')
  })

  it('gets a running run when its worker begins to wait for a rate limit, and when it goes on', async () => {
    const run = await create()
    const lease = await claim()
    const watcher = follow(run)
    expect((await watcher.next()).value).not.toHaveProperty('waiting')
    await queue.showWait(lease, HOUR_MS)
    const waiting = await nextPoll(watcher)
    expect(waiting).toMatchObject({ status: 'running', waiting: { reason: 'rate_limited' } })
    await queue.showWait(lease, 0)
    expect(await nextPoll(watcher)).toEqual({ ...waiting, waiting: undefined })
  })

  it('of a run that has ended gets it once', async () => {
    const run = await create()
    await queue.settle([{ ...(await claim()), outcome: { kind: 'stopped' } }])
    const told = await all(follow(run))
    expect(told).toMatchObject([{ id: run.id, status: 'stopped' }])
  })

  it('gets several changes between two polls as one', async () => {
    const watcher = follow(await create())
    await watcher.next()
    const lease = await claim()
    for (const fetched of [1, 2, 3]) await queue.save(lease, {}, [{ ...STATS, fetched }])
    expect(await nextPoll(watcher)).toMatchObject({ resourceStats: [{ fetched: 3 }] })
  })

  it('gets a keep-alive after fifteen silent seconds', async () => {
    const watcher = follow(await create())
    await watcher.next()
    const next = watcher.next()
    await clock.pass(15_000)
    expect(await next).toEqual({ done: false, value: undefined })
  })

  it('that reads slowly misses steps, never the end', async () => {
    const run = await create()
    const [slow, quick] = [follow(run), follow(run)]
    await slow.next()
    await quick.next()
    const lease = await claim()
    await nextPoll(quick)
    await queue.settle([{ ...lease, outcome: { kind: 'completed' } }])
    await nextPoll(quick)
    expect(await all(slow)).toMatchObject([{ status: 'completed' }])
  })

  it('ends immediately when its signal aborts, and no poll remains', async () => {
    const watcher = follow(await create())
    await watcher.next()
    const next = watcher.next()
    aborter.abort()
    expect(await next).toEqual({ done: true, value: undefined })
    await clock.pass(POLL_MS)
    await create()
    expect(polls()).toEqual([])
    expect(clock.sleeping).toBe(0)
  })

  it('does not learn whether another environment has the run', async () => {
    const run = await create()
    const otherTenant = await createTenant(database)
    const rejected = (id: string) => watch.watch(otherTenant.environmentId, id, aborter.signal).next()
    const unknown = newId()
    const [foreign, none] = await Promise.all([rejected(run.id), rejected(unknown)].map((next) => next.catch(String)))
    expect(String(foreign).replace(run.id, unknown)).toBe(none)
    expect(none).toContain('RESOURCE_NOT_FOUND')
  })

  it('gets an error when the run is removed', async () => {
    const run = await create()
    const watcher = follow(run)
    await watcher.next()
    const next = reasonOf(watcher.next())
    await execute(database.pool, 'delete from sync_job_run where id = :id', { id: run.id })
    await clock.pass(POLL_MS)
    expect(await next).toBe('RESOURCE_NOT_FOUND')
  })

  it('has to watch again after an hour', async () => {
    const watcher = follow(await create())
    await watcher.next()
    const next = reasonOf(watcher.next())
    void clock.sleep(HOUR_MS)
    await clock.pass(HOUR_MS)
    expect(await next).toBe('DEADLINE_EXCEEDED')
  })
})

describe('many watchers', () => {
  it('cost one poll per half second, one statement for those that wait, and a read only for what has changed', async () => {
    const runs = [await create(), await create(), await create()]
    const watchers = runs.flatMap((run) => [follow(run), follow(run)])
    await Promise.all(watchers.map((watcher) => watcher.next()))
    const lease = await claim()
    const hear = watchers.map((watcher) => watcher.next())
    statements = []
    await clock.pass(POLL_MS)
    const changed = watchers.flatMap((_, at) => (runs[Math.floor(at / 2)]?.id === lease.id ? [hear[at]] : []))
    expect(await Promise.all(changed)).toMatchObject([
      { value: { id: lease.id, status: 'running' } },
      { value: { id: lease.id, status: 'running' } },
    ])
    await clock.untilSleeping(POLL_MS)
    expect(polls()).toHaveLength(1)
    expect(statements).toHaveLength(4) // the poll, the changed run and its wait, the waits of the others
  })

  it('all get an error of the database, the slow ones when they ask, and may watch again', async () => {
    const run = await create()
    let isDown = false
    const flaky = {
      get pool() {
        if (isDown) throw new Error('the database is away')
        return database.pool
      },
    }
    watch = new RunWatch({ database: flaky, clock })
    const [waiting, slow] = [follow(run), follow(run)]
    await waiting.next()
    await slow.next()
    const told = waiting.next().catch(String)
    isDown = true
    await clock.pass(POLL_MS)
    expect(await told).toContain('the database is away')
    await expect(slow.next()).rejects.toThrow('the database is away')
    isDown = false
    expect((await follow(run).next()).value).toMatchObject({ id: run.id })
  })
})
