import { describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../src/base/index.ts'
import { execute } from '../../src/database/database.ts'
import { PollLoop, RunQueue } from '../../src/runs/index.ts'
import { silentLogger } from '../../src/telemetry/logger.ts'
import { createWorker } from '../../src/worker/index.ts'
import { idempotencyCleaner, partitionMaintenance } from '../../src/worker/maintenance.ts'
import { TriggerFixture } from '../schedules/trigger-fixture.ts'
import { testDatabase } from '../support/database.ts'
import { createTenant, readOne } from '../support/tenant.ts'

const { database } = await testDatabase()
const loopDeps = { clock: systemClock, random: () => 0, logger: silentLogger }

describe('a worker', () => {
  it('turns ticks into runs and executes them, and its drain leaves none held', async () => {
    const at = new TriggerFixture(database, await createTenant(database), new Date().toISOString())
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

describe('a loop', () => {
  it('goes on after a round that throws', async () => {
    let rounds = 0
    const third = Promise.withResolvers<void>()
    await using loop = new PollLoop(loopDeps, {
      name: 'test',
      intervalMs: 1,
      runOnce: async () => {
        if (++rounds === 3) third.resolve()
        throw new Error('a round failed')
      },
    })
    loop.start()
    await third.promise
    expect(rounds).toBeGreaterThanOrEqual(3)
  })

  it('does the next round at once when there is more, or when it is woken', async () => {
    let rounds = 0
    const reached = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await using loop = new PollLoop(loopDeps, {
      name: 'test',
      intervalMs: 3_600_000,
      runOnce: async () => {
        rounds++
        if (rounds === 2) reached[0]?.resolve()
        if (rounds === 3) reached[1]?.resolve()
        return rounds < 2
      },
    })
    loop.start()
    await reached[0]?.promise
    expect(rounds).toBe(2)
    loop.wake()
    await reached[1]?.promise
    expect(rounds).toBe(3)
  })

  it('ends after the round in flight', async () => {
    const [began, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let isDone = false
    const loop = new PollLoop(loopDeps, {
      name: 'test',
      intervalMs: 1,
      runOnce: async () => {
        began.resolve()
        await end.promise
        isDone = true
        return true
      },
    })
    loop.start()
    await began.promise
    const ended = loop[Symbol.asyncDispose]()
    end.resolve()
    await ended
    expect(isDone).toBe(true)
  })
})

describe('housekeeping', () => {
  it('forgets idempotency keys after a day and keeps younger ones', async () => {
    const insert = (age: string) =>
      execute(
        database.pool,
        `insert into idempotency_key (owner_id, request_id, method, created_at)
         select ?, gen_random_uuid(), 'm', now() - ?::interval from generate_series(1, 3)`,
        [newId(), age],
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
