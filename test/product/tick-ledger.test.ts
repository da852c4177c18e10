import { describe, expect, it } from 'vitest'
import { SyncJobCronTriggerService } from '../../gen/patchbay/v1/sync_job_cron_trigger_service_pb.ts'
import { SyncJobRunService } from '../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { systemClock } from '../../src/foundation/base/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import { RunQueue } from '../../src/sync/runs/index.ts'
import { Ticker } from '../../src/sync/schedules/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { clockedDatabase } from '../support/database.ts'
import { UUID } from '../support/matchers.ts'
import { createApiTenant, seedTenant } from '../support/seeded-tenant.ts'

const {
  createSyncJobCronTrigger: create,
  getSyncJobCronTrigger: get,
  listSyncJobCronTriggerTicks: ticks,
} = SyncJobCronTriggerService.method
const { listSyncJobRuns } = SyncJobRunService.method

const { database, clock } = await clockedDatabase()
const app = await startTestApp({}, database)
const world = await seedTenant(app, await createApiTenant(app))
const clients = app.clients({ token: world.environmentToken })
const DAY_MS = 86_400_000

/** Fires what is due at a moment, as a worker would. */
async function tickAt(now: Date): Promise<void> {
  const deps = { database, random: () => 0.5 }
  await clock.set(now)
  await using ticker = new Ticker({ ...deps, queue: new RunQueue(deps), clock: systemClock, logger: silentLogger })
  await ticker.runOnce()
  await clock.reset()
}

/** A daily trigger, and its first ticks. */
async function daily() {
  const trigger = await app.client('connect', { token: world.environmentToken }).ok(create, {
    sync_job_id: world.syncJobId,
    integrated_account_id: world.integratedAccountId,
    cron_expression: '0 0 * * *',
    daemon_group_key: 'ledger',
  })
  const first = Date.parse(String(trigger.next_run_at))
  return { id: trigger.id, tick: (day: number) => new Date(first + day * DAY_MS) }
}

describe('the ledger of a trigger', async () => {
  const { id, tick } = await daily()
  // Two runs may be open, one of them waiting; then nobody works for five days.
  for (const day of [0, 1, 2, 7]) await tickAt(tick(day))

  it.each(inTurn(clients))('tells over $wire of every tick what became of it, latest first', async (client) => {
    const entry = (day: number) => ({ scheduled_for: tick(day).toISOString() })

    expect(await client.ok(ticks, { id })).toEqual({
      ticks: [
        { ...entry(7), outcome: 'skipped', reason: 'overlap' },
        {
          ...entry(6),
          outcome: 'missed',
          missed: { from: tick(3).toISOString(), to: tick(6).toISOString(), count: 4 },
        },
        { ...entry(2), outcome: 'skipped', reason: 'overlap' },
        { ...entry(1), outcome: 'fired', run_id: UUID },
        { ...entry(0), outcome: 'fired', run_id: UUID },
      ],
      next_page_token: '',
    })
  })

  it.each(inTurn(clients))('is read page by page over $wire', async (client) => {
    const whole = (await client.ok(ticks, { id })).ticks
    const seen = []
    let token = ''
    do {
      const page = await client.ok(ticks, { id, page_size: 2, page_token: token })
      seen.push(...(page.ticks as unknown as readonly unknown[]))
      token = String(page.next_page_token)
    } while (token !== '')
    expect(seen).toEqual(whole)
  })

  it.each(inTurn(clients))('names runs that exist, one per tick, over $wire', async (client) => {
    const answer = await client.ok(listSyncJobRuns, { trigger_id: id, status: 'created' })
    const runs = answer.sync_job_runs as unknown as readonly { id: string; kind: string; scheduled_for: string }[]

    expect(runs.map(({ kind, scheduled_for }) => ({ kind, scheduled_for }))).toEqual([
      { kind: 'cron', scheduled_for: tick(1).toISOString() },
      { kind: 'cron', scheduled_for: tick(0).toISOString() },
    ])
    expect(await client.ok(get, { id })).toMatchObject({
      next_run_at: tick(8).toISOString(),
      last_run_at: expect.any(String),
      etag: '"v1"',
    })
  })
})
