import { describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { deleteWorker, findUnservedWork, touchWorker, unservedRegionMonitor } from '../../../../src/sync/runs/index.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'
import { TriggerFixture } from '../../sync/schedules/trigger-fixture.ts'

const { database, clock } = await clockedDatabase()

/** One of every kind of work, due now, for an account of the region. */
async function addWork(region: string): Promise<void> {
  const tenant = await createTenant(database)
  const [accountId] = tenant.accountIds
  const { environmentId } = tenant
  const at = new TriggerFixture(database, tenant, systemClock)
  const { id } = await at.create()
  const statements = [
    `update integrated_account set region = :region, status = 'connecting', connecting_due_at = now() - interval '1 second' where id = :accountId`,
    `insert into account_token (environment_id, integrated_account_id, region, due_at)
     values (:environmentId, :accountId, :region, now())`,
    `insert into account_removal (id, region, sealed, due_at) values (:accountId, :region, '', now())`,
    `update trigger_schedule set region = :region, next_fire_at = now() - interval '1 second' where trigger_id = :id`,
    `insert into run_queue (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, fair_rank,
       available_at, attempt)
     values (:accountId, now(), :environmentId, :accountId, :region, 'webhook', 1, now(), 0)`,
  ]
  for (const sql of statements)
    await execute(database.pool, sql, { region, accountId: accountId ?? '', environmentId, id })
}

const EVERYTHING = ['activation', 'removal', 'run', 'tick', 'token']

async function unserved(): Promise<Record<string, string[]>> {
  const found = await findUnservedWork(database.pool)
  const byRegion = Object.groupBy(found, ({ region }) => region)
  return Object.fromEntries(
    Object.entries(byRegion).map(([region, each]) => [region, (each ?? []).map(({ work }) => work)]),
  )
}

describe('work in a region without a worker', () => {
  it('is counted by region and kind once it has waited for a minute, until a worker serves the region', async () => {
    await clock.set('2031-03-01T00:00:00Z')
    await addWork('eu')
    await addWork('wnam')
    const [euWorker, anyWorker] = [newId(), newId()]
    expect(await unserved()).toEqual({})
    await clock.advance(61_000)
    expect(await unserved()).toEqual({ eu: EVERYTHING, wnam: EVERYTHING })
    await touchWorker(database.pool, euWorker, ['eu', 'apac'])
    expect(await unserved()).toEqual({ wnam: EVERYTHING })
    await touchWorker(database.pool, anyWorker, [])
    expect(await unserved()).toEqual({})
    await deleteWorker(database.pool, anyWorker)
    await clock.advance(30_000)
    expect(await unserved()).toEqual({ eu: EVERYTHING, wnam: EVERYTHING })
  })

  it('is reported by the monitor, which says nothing while there is none', async () => {
    const reports: number[] = []
    const monitor = unservedRegionMonitor(database, (work) => reports.push(work.length))
    await monitor.runOnce()
    const worker = newId()
    await touchWorker(database.pool, worker, [])
    await monitor.runOnce()
    expect(reports).toEqual([2 * EVERYTHING.length])
  })
})
