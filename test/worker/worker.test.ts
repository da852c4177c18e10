import { describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../src/base/index.ts'
import { execute } from '../../src/database/database.ts'
import { partitionMaintenance, RunQueue } from '../../src/runs/index.ts'
import { silentLogger } from '../../src/telemetry/logger.ts'
import { createWorker } from '../../src/worker/index.ts'
import { idempotencyCleaner } from '../../src/worker/maintenance.ts'
import { TriggerFixture } from '../schedules/trigger-fixture.ts'
import { testDatabase } from '../support/database.ts'
import { createTenant, readOne } from '../support/tenant.ts'

const { database } = await testDatabase()

describe('a worker', () => {
  it('turns ticks into runs and executes them, and its drain leaves none held', async () => {
    const at = new TriggerFixture(database, await createTenant(database), systemClock)
    const { id } = await at.create({ cronExpression: '* * * * * *' })
    const executed = Promise.withResolvers<string | null>()
    const worker = createWorker({
      database,
      queue: new RunQueue({ database, random: Math.random }),
      clock: systemClock,
      random: Math.random,
      logger: silentLogger,
      holder: 'test',
      concurrency: 2,
      executeRun: async ({ triggerId }) => {
        executed.resolve(triggerId)
        return { kind: 'completed' }
      },
    })
    worker.start()
    expect(await executed.promise).toBe(id)
    await worker.drain(10_000)
    expect(worker.stats.runs.running).toBe(0)
    expect(worker.stats.ticker.fired).toBeGreaterThan(0)
    expect(await readOne(database, 'select count(*) as count from run_lease')).toEqual({ count: 0 })
  })
})

describe('housekeeping', () => {
  it('forgets idempotency keys after a day and keeps younger ones', async () => {
    const insert = (age: string) =>
      execute(
        database.pool,
        `insert into idempotency_key (owner_id, request_id, method, created_at)
         select :ownerId, gen_random_uuid(), 'm', now() - :age::interval from generate_series(1, 3)`,
        { ownerId: newId(), age },
      )
    await insert('25 hours')
    await insert('23 hours')
    await idempotencyCleaner(database, systemClock).runOnce()
    expect(await readOne(database, 'select count(*) as count from idempotency_key')).toEqual({ count: 3 })
  })

  it('has partitions for the days to come', async () => {
    const clock = { ...systemClock, now: () => new Date('2033-12-30T12:00:00Z') }
    await partitionMaintenance(database, clock).runOnce()
    await partitionMaintenance(database, clock).runOnce()
    const { days } = await readOne<{ days: readonly string[] }>(
      database,
      `select array_agg(relname::text order by relname) as days from pg_class where relname ~ '^sync_job_run_203[34]....$'`,
    )
    expect(days).toEqual([
      'sync_job_run_20331229',
      'sync_job_run_20331230',
      'sync_job_run_20331231',
      'sync_job_run_20340101',
      'sync_job_run_20340102',
      'sync_job_run_20340103',
    ])
  })
})
