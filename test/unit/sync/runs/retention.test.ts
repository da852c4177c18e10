import { beforeEach, describe, expect, it } from 'vitest'
import { ensureDayPartitions } from '../../../../src/foundation/database/day-partition.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { Lease } from '../../../../src/foundation/queue/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import {
  createRun,
  getRun,
  type QueuedRun,
  RUN_DAY_TABLES,
  retention,
  retryRun,
} from '../../../../src/sync/runs/index.ts'
import { WEBHOOK_QUEUE_GROUP } from '../../../../src/sync/runs/run.ts'
import { getTrigger, listTicks } from '../../../../src/sync/schedules/index.ts'
import { someCases } from '../../../support/case-count.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant, readOne } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from '../schedules/trigger-fixture.ts'

const { database, clock } = await clockedDatabase()
const FIRST_DAY = '2031-03-01'
const DAY_MS = 86_400_000
const FAILURE = { reason: 'UPSTREAM_ERROR', message: 'it broke' }

let at: TriggerFixture

beforeEach(async () => {
  for (const { name } of await partitions()) await execute(database.pool, `drop table ${name}`)
  await clearTriggers(database)
  // Partitions are dropped by hand here, which nothing counts.
  await execute(database.pool, 'truncate figure_delta')
  for (const table of RUN_DAY_TABLES)
    await database.transaction((tx) => ensureDayPartitions(tx, table, new Date(FIRST_DAY), 40))
  await clock.set(`${FIRST_DAY}T11:59:50Z`)
  at = new TriggerFixture(database, await createTenant(database, 3), clock)
})

/** The partitions of the days these tests are about. */
async function partitions(): Promise<{ name: string }[]> {
  return await query(
    database.pool,
    `select relname::text as name from pg_class where relkind = 'r' and relname ~ '_20310[345]..$' order by 1`,
  )
}

/** Which of the first days both tables still have. */
async function keptDays(table: 'sync_job_run' | 'missed_ticks', count: number): Promise<string[]> {
  const names = new Set((await partitions()).map(({ name }) => name))
  const days = Array.from({ length: count }, (_, ahead) => new Date(Date.parse(FIRST_DAY) + ahead * DAY_MS))
  const texts = days.map((day) => day.toISOString().slice(0, 10))
  return texts.filter((day) => names.has(`${table}_${day.replaceAll('-', '')}`))
}

const forget = (days = 30) => retention({ database, clock, logger: silentLogger }, days).runOnce()
const daysLater = (days: number) => clock.set(new Date(Date.parse(`${FIRST_DAY}T12:00:00Z`) + days * DAY_MS))
/** Ends a run that has read everything. */
async function complete(run: Lease<QueuedRun>) {
  const counters = { pages: 1, fetched: 0, delivered: 0, failed: 0, complete: true }
  const stats = run.resources.map(({ resource, method }) => {
    return { resource: String(resource), method: String(method), ...counters }
  })
  await at.queue.save(run, null, stats)
  return await at.queue.settle([{ ...run, outcome: { kind: 'completed' } }])
}

/** Fires a daily trigger at noon of the first day and claims its run. */
async function runOfFirstDay() {
  const { id } = await at.create({ cronExpression: '0 12 * * *' })
  await clock.advance(10_000)
  await at.fire()
  const [run] = await at.claim()
  if (run === undefined) throw new Error('no run')
  return { triggerId: id, run }
}

describe('retention', () => {
  it('drops a day whole once it is older than the days that are kept, and not before', async () => {
    const { run } = await runOfFirstDay()
    await complete(run)
    await daysLater(30)
    await forget()
    expect(await keptDays('sync_job_run', 3)).toEqual(['2031-03-01', '2031-03-02', '2031-03-03'])
    await daysLater(31)
    await forget()
    expect(await keptDays('sync_job_run', 3)).toEqual(['2031-03-02', '2031-03-03'])
    expect(await keptDays('missed_ticks', 3)).toEqual(['2031-03-02', '2031-03-03'])
    await expect(getRun(database.pool, at.tenant.environmentId, run.id)).rejects.toThrow('RESOURCE_NOT_FOUND')
  })

  const unfinished: readonly (readonly [what: string, prepare: () => Promise<void>])[] = [
    ['waits', async () => {}],
    ['is held', async () => void (await at.claim())],
    [
      'waits for a rate limit',
      async () => {
        const [run] = await at.claim()
        if (run !== undefined) await at.queue.settle([{ ...run, outcome: { kind: 'rate_limited', afterMs: DAY_MS } }])
      },
    ],
  ]
  it.each(someCases(unfinished, 1))('keeps the day of a run that %s until the run is over', async (_, prepare) => {
    await at.create({ cronExpression: '0 12 * * *' })
    await clock.advance(10_000)
    await at.fire()
    await prepare()
    await daysLater(35)
    await forget()
    expect(await keptDays('sync_job_run', 6)).toEqual(['2031-03-01', '2031-03-06'])
    await at.queue.reap()
    const [run] = await at.claim()
    expect(run).toMatchObject({ scheduledFor: new Date(`${FIRST_DAY}T12:00:00Z`) })
    if (run !== undefined) await complete(run)
    await forget()
    expect(await keptDays('sync_job_run', 6)).toEqual(['2031-03-06'])
  })

  it('lets a trigger show its latest run, and an incremental sync begin where the last one did', async () => {
    const { triggerId, run } = await runOfFirstDay()
    await complete(run)
    await daysLater(32)
    await forget()
    expect(await keptDays('sync_job_run', 1)).toEqual([])
    const shown = await getTrigger(database.pool, at.tenant.environmentId, triggerId)
    expect(shown).toMatchObject({
      lastRunStatus: 'completed',
      lastRunAt: run.scheduledFor,
    })
    await at.fire()
    const [next] = await at.claim()
    expect(next?.triggerId).toBe(triggerId)
    expect(next?.previousRunDates).toEqual([new Date(Date.parse(`${FIRST_DAY}T12:00:00Z`) - 120_000)])
  })

  it('forgets the ledger of a day with the day, stretches that were missed as well', async () => {
    const { id } = await at.create({ cronExpression: '0 * * * *' })
    await clock.set(`${FIRST_DAY}T22:30:00Z`)
    await at.fire()
    const ledger = async () =>
      (await listTicks(database.pool, at.tenant.environmentId, id, {})).items.map(({ outcome }) => outcome)
    expect(await ledger()).toEqual(['fired', 'missed'])
    for (const run of await at.claim()) await complete(run)
    await daysLater(31)
    await forget()
    expect(await ledger()).toEqual([])
  })

  it('forgets the checkpoints of dropped runs, and no others', async () => {
    const failOne = async () => {
      const { run } = await runOfFirstDay()
      await at.queue.save(run, { page: 1 }, [])
      await at.queue.settle([{ ...run, outcome: { kind: 'failed', error: FAILURE } }])
      return run
    }
    await failOne()
    await daysLater(31)
    const { id } = await database.transaction((tx) =>
      createRun(at.deps, tx, at.tenant.environmentId, {
        syncJobId: at.tenant.syncJobId,
        integratedAccountId: at.tenant.accountIds[2] ?? '',
        destination: { kind: 'webhook', webhookId: at.tenant.webhookId },
      }),
    )
    const [young] = await at.queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder: 'worker', limit: 1 })
    if (young === undefined) throw new Error('no run')
    await at.queue.save(young, { page: 2 }, [])
    await forget()
    expect(await query(database.pool, 'select run_id as id from run_checkpoint')).toEqual([{ id }])
  })

  it('empties the partition of days without one when all it has is old and over', async () => {
    await execute(database.pool, 'drop table sync_job_run_20310301')
    const { run } = await runOfFirstDay()
    const count = () => readOne(database, 'select count(*) as count from sync_job_run_default')
    expect(await count()).toEqual({ count: 1 })
    await daysLater(31)
    await forget()
    expect(await count()).toEqual({ count: 1 })
    await complete(run)
    await daysLater(29)
    await forget()
    expect(await count()).toEqual({ count: 1 })
    await daysLater(31)
    await forget()
    expect(await count()).toEqual({ count: 0 })
  })

  it('gives way to other statements on the table, and is done the next time', async () => {
    const { run } = await runOfFirstDay()
    await complete(run)
    await daysLater(31)
    await database.transaction(async (tx) => {
      await query(tx, 'select from sync_job_run limit 1')
      await forget()
    })
    expect(await keptDays('sync_job_run', 1)).toEqual([FIRST_DAY])
    await forget()
    expect(await keptDays('sync_job_run', 1)).toEqual([])
  })

  it('never drops a run that is retried at the same moment', async () => {
    const { run } = await runOfFirstDay()
    await at.queue.settle([{ ...run, outcome: { kind: 'failed', error: FAILURE } }])
    await daysLater(31)
    const { environmentId } = at.tenant
    const [retried] = await Promise.allSettled([
      database.transaction((tx) => retryRun({ queue: at.queue }, tx, environmentId, run.id)),
      forget(),
    ])
    const kept = await keptDays('sync_job_run', 1)
    expect(kept).toEqual(retried.status === 'fulfilled' ? [FIRST_DAY] : [])
    expect(await at.claim()).toHaveLength(kept.length)
  })
})
