import { describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { EVENT_DAYS } from '../../../../src/platform/outbox/index.ts'
import { dayRetentions, idempotencyCleaner, partitionMaintenance } from '../../../../src/server/worker/maintenance.ts'
import { createWorker } from '../../../../src/server/worker/worker.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { ATTEMPT_DAYS, DELIVERY_DAYS } from '../../../../src/webhooks/outbound/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { createTenant, readOne } from '../../../support/tenant.ts'
import { TriggerFixture } from '../../sync/schedules/trigger-fixture.ts'

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
  it('drops events by days, once they are older than the days that are kept', async () => {
    const days = () =>
      readOne<{ days: readonly string[] }>(
        database,
        `select array_agg(relname::text order by relname) as days from pg_class where relname ~ '^event_2035....$'`,
      )
    const environmentId = newId()
    const insertAt = (time: string) =>
      execute(
        database.pool,
        `insert into event (environment_id, id, type, payload, payload_bytes)
         values (:environmentId, :id, 'webhook:recovered', jsonb_build_object('id', :id::uuid), 2)`,
        {
          environmentId,
          id: newId(Date.parse(time)),
        },
      )
    const clockAt = (time: string) => ({ ...systemClock, now: () => new Date(time) })
    const deps = (time: string) => ({ database, clock: clockAt(time), logger: silentLogger })
    await insertAt('2034-05-05T05:05:05Z') // a day without a partition
    await partitionMaintenance(database, clockAt('2035-03-02T12:00:00Z')).runOnce()
    for (const time of ['2035-03-01T00:00:00Z', '2035-03-01T23:59:59.999Z', '2035-03-02T00:00:00Z'])
      await insertAt(time)
    const partitions = await query<{ name: string }>(
      database.pool,
      'select tableoid::regclass::text as name from event where environment_id = :environmentId order by id',
      { environmentId },
    )
    expect(partitions.map(({ name }) => name)).toEqual([
      'event_default',
      'event_20350301',
      'event_20350301',
      'event_20350302',
    ])
    const retain = async (now: string) => {
      const events = { name: 'event', tables: [EVENT_DAYS], days: 30 }
      for (const loop of dayRetentions(deps(now), [events])) await loop.runOnce()
    }
    await retain('2035-03-31T23:59:59Z')
    expect((await days()).days[0]).toBe('event_20350301')
    await retain('2035-04-01T00:00:00Z')
    expect((await days()).days[0]).toBe('event_20350302')
    expect(
      await readOne(database, 'select count(*) as count from event where environment_id = :environmentId', {
        environmentId,
      }),
    ).toEqual({ count: 1 })
  })

  it('drops attempts before their deliveries, and no day with a delivery that waits', async () => {
    const environmentId = newId()
    const idAt = (time: string) => newId(Date.parse(time))
    const clockAt = (time: string) => ({ ...systemClock, now: () => new Date(time) })
    await partitionMaintenance(database, clockAt('2036-03-02T12:00:00Z')).runOnce()
    const [ended, waiting] = [idAt('2036-03-01T12:00:00Z'), idAt('2036-03-02T12:00:00Z')]
    for (const id of [ended, waiting]) {
      await execute(
        database.pool,
        `insert into delivery (environment_id, id, event_id, event_type, webhook_id, trigger)
         values (:environmentId, :id, :id, 'record:created', :id, 'automatic')`,
        { environmentId, id },
      )
      await execute(
        database.pool,
        `insert into delivery_attempt (environment_id, delivery_id, n, scheduled_at, started_at, total_ms, request_headers)
         values (:environmentId, :id, 1, now(), now(), 1, '[]')`,
        { environmentId, id },
      )
    }
    const queue = `insert into delivery_queue (delivery_id, environment_id, webhook_id, event_id, queue_group, trigger, available_at, attempt)
      values (:waiting, :environmentId, :waiting, :waiting, 'retry', 'automatic', now(), 1)`
    await execute(database.pool, queue, { waiting, environmentId })
    const left = async (now: string) => {
      const deps = { database, clock: clockAt(now), logger: silentLogger }
      const attempts = { name: 'attempts', tables: [ATTEMPT_DAYS], days: 14 }
      const deliveries = { name: 'deliveries', tables: [DELIVERY_DAYS], days: 30 }
      const forever = { name: 'forever', tables: [DELIVERY_DAYS], days: 0 }
      for (const loop of dayRetentions(deps, [attempts, deliveries, forever])) await loop.runOnce()
      const idsOf = async (table: string, id: string) => {
        const sql = `select ${id} as id from ${table} where environment_id = :environmentId order by id`
        return (await query<{ id: string }>(database.pool, sql, { environmentId })).map((row) => row.id)
      }
      return { deliveries: await idsOf('delivery', 'id'), attempts: await idsOf('delivery_attempt', 'delivery_id') }
    }
    expect(await left('2036-03-15T23:59:59Z')).toEqual({ deliveries: [ended, waiting], attempts: [ended, waiting] })
    expect(await left('2036-03-16T00:00:00Z')).toEqual({ deliveries: [ended, waiting], attempts: [waiting] })
    expect(await left('2036-05-01T00:00:00Z')).toEqual({ deliveries: [waiting], attempts: [] })
    await execute(database.pool, 'delete from delivery_queue where delivery_id = :waiting', { waiting })
    expect(await left('2036-05-01T00:00:00Z')).toEqual({ deliveries: [], attempts: [] })
  })
})
