import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EnvironmentService } from '../../gen/patchbay/v1/environment_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { ensureDayPartitions } from '../../src/foundation/database/day-partition.ts'
import { dropOldDays, execute, query } from '../../src/foundation/database/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import { foldFigures, readFigures } from '../../src/platform/figures/sql.ts'
import { RUN_DAY_TABLES } from '../../src/sync/runs/index.ts'
import { startTestApp } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { expectExactFigures } from '../support/figures.ts'
import { seedEnvironment } from '../support/seed-rows.ts'
import { createApiTenant, firstTenant, type SeededTenant, seedTenant } from '../support/seeded-tenant.ts'
import { recordStatements, StatementCosts } from '../support/statement-costs.ts'
import { addHistory } from '../support/tenancy-matrix.ts'

const { database, url } = await testDatabase()
const app = await startTestApp({}, database)
const costs = new StatementCosts(url)
const DAY_MS = 86_400_000
const MIGRATION = join(import.meta.dirname, '../../src/foundation/database/migrations/0036-figures.sql')

beforeAll(() => costs.connect())
afterAll(() => costs[Symbol.asyncDispose]())

const STATUSES = [
  'created',
  'running',
  'rate_limited',
  'completed',
  'partially_completed',
  'failed',
  'stopped',
  'skipped',
]

/** Inserts runs of a moment in each of the states, so many of each. */
async function insertRuns(environmentId: string, each: number, at = new Date()): Promise<void> {
  await execute(
    database.pool,
    `with run as (
       insert into sync_job_run (id, scheduled_for, environment_id, trigger_id, kind, sync_job_id, integrated_account_id, region,
         status, skip_reason, daemon_group_key, resources, args, error_handling, ignore_previous_run)
       select gen_random_uuid(), :at, :environmentId, gen_random_uuid(), 'cron', gen_random_uuid(), gen_random_uuid(), 'wnam',
         status, case when status = 'skipped' then 'overlap' end, 'group', '[]', '{}', 'batch', false
       from unnest(:STATUSES::text[]) status, generate_series(1, :each) returning *
     )
     insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, fair_rank,
       available_at, attempt)
     select id, scheduled_for, environment_id, integrated_account_id, region, 'group', 0, now(), 0 from run
     where status in ('created', 'running', 'rate_limited')`,
    { environmentId, each, at, STATUSES },
  )
}

const setStatus = (environmentId: string, from: string, to: string) =>
  execute(
    database.pool,
    'update sync_job_run set status = :to where environment_id = :environmentId and status = :from',
    {
      environmentId,
      from,
      to,
    },
  )

async function foldAll(): Promise<void> {
  while ((await foldFigures(database.pool, 50)) > 0);
}

const deltas = () => query(database.pool, 'select * from figure_delta')
const runsOf = async (environmentId: string) =>
  Object.fromEntries(
    (await readFigures(database.pool, environmentId))
      .filter(({ kind }) => kind === 'run')
      .map(({ state, count }) => [state, count]),
  )

describe('figures of states', () => {
  let one: SeededTenant
  let other: SeededTenant

  beforeAll(async () => {
    one = await seedTenant(app, firstTenant(app))
    other = await seedTenant(app, await createApiTenant(app))
  })

  it('are the numbers of rows after each operation, folded or not', async () => {
    const client = app.client('connect', { token: one.environmentToken })
    const { pauseSyncJobCronTrigger, resumeSyncJobCronTrigger } = SyncJobCronTriggerService.method
    const id = one.syncJobCronTriggerId
    const steps: readonly (() => Promise<unknown>)[] = [
      () => addHistory(database, one),
      () => insertRuns(one.environmentId, 3),
      () => client.ok(pauseSyncJobCronTrigger, { id }),
      () => client.ok(SyncJobRunService.method.stopSyncJobRun, { id: one.syncJobRunId }),
      () => client.ok(SyncJobRunService.method.retrySyncJobRun, { id: one.syncJobRunId }),
      () => setStatus(one.environmentId, 'running', 'completed'),
      () => setStatus(one.environmentId, 'rate_limited', 'failed'),
      () =>
        execute(
          database.pool,
          `update trigger_schedule set is_paused = false, error = 'wrong' where trigger_id = :id`,
          { id },
        ),
      () => client.ok(resumeSyncJobCronTrigger, { id }),
      () => execute(database.pool, `update inbound_event set state = 'processed'`),
      () =>
        execute(
          database.pool,
          `update delivery set state = 'failed', next_attempt_at = null, finished_at = now() where state = 'pending'`,
        ),
      () => execute(database.pool, `update integrated_account set status = 'needs_reauth'`),
      () => client.ok(WebhookService.method.deleteWebhook, { id: one.webhookId, force: true }),
      () =>
        client.ok(IntegratedAccountService.method.deleteIntegratedAccount, {
          id: one.integratedAccountId,
          force: true,
        }),
    ]
    for (const [at, step] of steps.entries()) {
      await step()
      await expectExactFigures(url)
      if (at % 3 === 0) await foldFigures(database.pool, 5)
      await expectExactFigures(url)
    }
    await foldAll()
    expect(await deltas()).toEqual([])
    await expectExactFigures(url)
  })

  it('are what the lists of an environment have, and nothing of another', async () => {
    await insertRuns(other.environmentId, 2)
    const client = app.client('grpc', { token: other.environmentToken })
    const figures = await readFigures(database.pool, other.environmentId)
    const ofKind = (wanted: string) =>
      figures.filter(({ kind }) => kind === wanted).map(({ state, count }) => ({ state, count }))
    const listed = await Promise.all(
      STATUSES.map(async (status) => {
        const { sync_job_runs: runs } = await client.ok(SyncJobRunService.method.listSyncJobRuns, { status })
        return { state: status, count: (runs as unknown[]).length }
      }),
    )
    expect(ofKind('run')).toEqual(listed.toSorted((a, b) => a.state.localeCompare(b.state)))
    expect(ofKind('trigger')).toEqual([{ state: 'active', count: 1 }])
    expect(ofKind('account')).toHaveLength(1)
  })

  it('leave nothing behind of a deleted environment', async () => {
    const team = app.client('connect', { token: other.teamToken })
    await team.ok(EnvironmentService.method.deleteEnvironment, { id: other.environmentId, force: true })
    await foldAll()
    const left = await query(database.pool, 'select * from figure where environment_id = :id', {
      id: other.environmentId,
    })
    expect([left, await deltas()]).toEqual([[], []])
  })
})

describe('folding', () => {
  it('by two workers at once counts every delta once, and a read in between is right', async () => {
    const environmentId = await seedEnvironment(database)
    await foldAll()
    const expected: Record<string, number> = Object.fromEntries(STATUSES.map((status) => [status, 20]))
    for (let n = 0; n < 20; n++) await insertRuns(environmentId, 1)
    let second: Promise<number> | undefined
    await database.transaction(async (first) => {
      expect(await foldFigures(first, 64)).toBe(64)
      expect(await runsOf(environmentId)).toEqual(expected)
      // Waits for the figures that both add, and takes what the first has not.
      second = foldFigures(database.pool, 1_000)
      expect(await runsOf(environmentId)).toEqual(expected)
    })
    expect(await second).toBe(20 * STATUSES.length - 64)
    expect(await deltas()).toEqual([])
    expect(await runsOf(environmentId)).toEqual(expected)
    await expectExactFigures(url)
  })

  it('by many workers at once ends with the numbers of rows', async () => {
    const environments = await Promise.all(Array.from({ length: 5 }, () => seedEnvironment(database)))
    await Promise.all(environments.flatMap((id) => Array.from({ length: 10 }, () => insertRuns(id, 1))))
    await Promise.all(Array.from({ length: 4 }, () => foldAll()))
    await foldAll()
    await expectExactFigures(url)
  })
})

describe('days', () => {
  const [runs] = RUN_DAY_TABLES
  const clock = { now: () => new Date() }

  it('that are dropped take their figures along, folded or not, and no others', async () => {
    if (runs === undefined) throw new Error('no table of runs')
    const environmentId = await seedEnvironment(database)
    const old = new Date(Date.now() - 40 * DAY_MS)
    await database.transaction((tx) => ensureDayPartitions(tx, runs, old, 1))
    await insertRuns(environmentId, 2, old)
    await foldAll()
    await insertRuns(environmentId, 1, old)
    await insertRuns(environmentId, 1)
    await execute(database.pool, 'delete from run_queue where scheduled_for = :old', { old })
    await dropOldDays({ database, clock, logger: silentLogger }, runs, 30)

    expect(await runsOf(environmentId)).toEqual(Object.fromEntries(STATUSES.map((status) => [status, 1])))
    await expectExactFigures(url)
  })

  it('without a partition of their own do so too', async () => {
    if (runs === undefined) throw new Error('no table of runs')
    const environmentId = await seedEnvironment(database)
    await insertRuns(environmentId, 2, new Date(Date.now() - 50 * DAY_MS))
    for (const status of ['created', 'running', 'rate_limited']) await setStatus(environmentId, status, 'completed')
    await execute(database.pool, 'delete from run_queue where environment_id = :environmentId', { environmentId })
    await foldAll()
    await dropOldDays({ database, clock, logger: silentLogger }, runs, 30)

    expect(await runsOf(environmentId)).toEqual({})
    await expectExactFigures(url)
  })
})

it('count what there was before they were kept: the migration of a database with rows', async () => {
  await seedTenant(app, await createApiTenant(app))
  await insertRuns(await seedEnvironment(database), 3)
  const own = ['integrated_account', 'trigger_schedule', 'sync_job_run', 'delivery', 'inbound_event']
  await database.pool.raw(
    `drop table figure, figure_delta, call_hour; drop function day_of_id;
     ${own.map((name) => `drop function count_${name} cascade;`).join(' ')}`,
  )
  await database.pool.raw(readFileSync(MIGRATION, 'utf8'))
  await expectExactFigures(url)
})

it('a change of no state writes no figure', async () => {
  const tenant = await seedTenant(app, await createApiTenant(app))
  const client = app.client('connect', { token: tenant.environmentToken })
  await foldAll()
  await client.ok(SyncJobCronTriggerService.method.updateSyncJobCronTrigger, {
    id: tenant.syncJobCronTriggerId,
    daemon_group_key: 'other',
  })
  await execute(database.pool, 'update trigger_schedule set next_fire_at = null, last_run_status = null, error = null')
  await execute(database.pool, 'update integrated_account set updated_at = now(), status = status')
  await execute(database.pool, 'update sync_job_run set status = status, updated_at = now()')
  expect(await deltas()).toEqual([])
})

it('reading them costs the same however many rows there are', async () => {
  const environmentId = await seedEnvironment(database)
  const [read] = await recordStatements(() => readFigures(database.pool, environmentId))
  if (read === undefined) throw new Error('nothing was read')
  const pagesRead: number[] = []
  for (const each of [10, 1_000]) {
    await insertRuns(environmentId, each)
    await foldAll()
    await execute(database.pool, 'analyze figure, figure_delta')
    for (const { pages } of await costs.measure({ ...read, text: `${read.text} -- ${each}` })) pagesRead.push(pages)
  }
  expect(Math.max(...pagesRead)).toBeLessThan(12)
})
