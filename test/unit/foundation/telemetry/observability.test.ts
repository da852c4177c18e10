import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../../src/foundation/base/index.ts'
import { Database, execute } from '../../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { createApi } from '../../../../src/server/api-server.ts'
import { readConfig } from '../../../../src/server/config/index.ts'
import { createContainer } from '../../../../src/server/container.ts'
import { createObservability } from '../../../../src/server/observability.ts'
import { createWorkerProcess } from '../../../../src/server/worker-process.ts'
import { countRunBacklog } from '../../../../src/sync/runs/index.ts'
import { pauseTrigger, SchedulerMonitor, STALLED_AFTER_SECONDS } from '../../../../src/sync/schedules/index.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant } from '../../../support/tenant.ts'
import { clearTriggers, TriggerFixture } from '../../sync/schedules/trigger-fixture.ts'

const { database, clock } = await clockedDatabase()
const config = readConfig({ PATCHBAY_PORT: '0', PATCHBAY_METRICS_PORT: '0' })
const storage = {
  database,
  secrets: createSecretStore(parseKeyRing(generateKeyRingText('test'))),
  embedded: undefined,
  [Symbol.asyncDispose]: async () => {},
}
const observability = createObservability(config, storage)
const container = createContainer({ config, storage, logger: silentLogger })
const api = createApi({ config, container, logger: silentLogger, observability })
const [{ url: apiUrl }, listening] = await Promise.all([api.listen(), observability.start()])
const url = listening?.url ?? ''
afterAll(async () => {
  await api[Symbol.asyncDispose]()
  await container[Symbol.asyncDispose]()
  await observability[Symbol.asyncDispose]()
})

beforeEach(async () => {
  await clock.reset()
  await clearTriggers(database)
})

/** A trigger whose tick came due so long ago. */
async function overdue(seconds: number) {
  const at = new TriggerFixture(database, await createTenant(database), clock)
  const { id } = await at.create()
  await execute(
    database.pool,
    'update trigger_schedule set next_fire_at = clock_timestamp() - make_interval(secs => :seconds)',
    { seconds },
  )
  return { id, at }
}

async function scheduler() {
  await observability.schedulerMonitor.poll()
  const rpc = await fetch(`${apiUrl}/grpc.health.v1.Health/Check`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ service: 'patchbay.scheduler' }),
  })
  const probes = await Promise.all([fetch(`${apiUrl}/healthz/scheduler`), fetch(`${url}/healthz/scheduler`)])
  const { status } = (await rpc.json()) as { readonly status: string }
  return [status, ...probes.map((probe) => probe.status)]
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}

describe('the health of the schedule', () => {
  it('turns when the oldest tick has waited too long, and back when it has fired', async () => {
    const { at } = await overdue(STALLED_AFTER_SECONDS - 10)
    expect(await scheduler()).toEqual(['SERVING', 200, 200])
    await execute(database.pool, `update trigger_schedule set next_fire_at = next_fire_at - interval '20 seconds'`)
    expect(await scheduler()).toEqual(['NOT_SERVING', 503, 503])
    await clock.set(new Date())
    await at.fire()
    expect(await scheduler()).toEqual(['SERVING', 200, 200])
  })

  it('leaves the health of the API alone', async () => {
    await overdue(3_600)
    await scheduler()
    const probes = await Promise.all([fetch(`${apiUrl}/healthz`), fetch(`${url}/healthz`)])
    expect(probes.map(({ status }) => status)).toEqual([200, 200])
  })

  it('does not wait for a trigger that is paused', async () => {
    const { id, at } = await overdue(3_600)
    await clock.set(new Date())
    await database.transaction((tx) => pauseTrigger(at.deps, tx, at.tenant.environmentId, id))
    expect(await scheduler()).toEqual(['SERVING', 200, 200])
  })

  it('turns when the database cannot be asked for as long', async () => {
    await overdue(STALLED_AFTER_SECONDS - 1)
    const away = new Database({ target: { kind: 'url', url: 'postgres://nobody@127.0.0.1:1/none' } })
    let target: Pick<Database, 'pool'> = database
    const watch = new SchedulerMonitor({
      clock: systemClock,
      random: Math.random,
      database: {
        get pool() {
          return target.pool
        },
      },
    })
    const seen: boolean[] = []
    watch.subscribe((isStalled) => seen.push(isStalled))
    await watch.poll()
    expect(watch.oldestDueAgeSeconds).toBeGreaterThan(STALLED_AFTER_SECONDS - 2)
    target = away
    while (!watch.isStalled) await watch.poll()
    await watch.poll()
    expect(seen).toEqual([false, true])
    await away[Symbol.asyncDispose]()
  })
})

describe('the port for metrics', () => {
  it('shows the schedule and the queue as they are in the database', async () => {
    await overdue(31) // to the millisecond, which may round up
    await observability.schedulerMonitor.poll()
    expect(await metric('patchbay_oldest_due_age_seconds')).toBeGreaterThanOrEqual(30)
  })

  it('counts the calls of the API in the same process', async () => {
    const name = 'patchbay_requests_total{operation="/healthz",code="OK"}'
    const before = (await metric(name)) || 0
    await fetch(`${apiUrl}/healthz`)
    expect(await metric(name)).toBe(before + 1)
  })

  it('shows what a worker in the same process does', async () => {
    await overdue(0)
    const worker = createWorkerProcess({ config, container, logger: silentLogger, observability })
    worker.start()
    while (!((await metric('patchbay_ticks_total{outcome="fired",reason=""}')) > 0))
      await observability.schedulerMonitor.poll()
    await worker[Symbol.asyncDispose]()
    expect(await metric('patchbay_tick_lateness_seconds_count')).toBeGreaterThan(0)
    expect(await metric('patchbay_queue_depth{group="webhook",state="ready"}')).not.toBeLessThan(0)
  })

  it('has nothing else, and the public port has no metrics', async () => {
    const paths = [`${url}/`, `${url}/metrics/x`, `${apiUrl}/metrics`]
    expect(await Promise.all(paths.map(async (path) => (await fetch(path)).status))).toEqual([404, 404, 404])
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405)
  })

  it('answers probes of liveness and readiness, of which a drain changes one', async () => {
    const statuses = async (base: string) =>
      await Promise.all(['/livez', '/readyz'].map(async (path) => (await fetch(`${base}${path}`)).status))
    expect([await statuses(url), await statuses(apiUrl)]).toEqual([
      [200, 200],
      [200, 200],
    ])
    await using draining = createObservability(config, storage)
    const listening = await draining.start()
    draining.startDrain()
    expect(await statuses(listening?.url ?? '')).toEqual([200, 503])
  })

  it('is not there, and nothing is counted, unless a port is set', async () => {
    await using quiet = createObservability(readConfig({}), storage)
    expect(quiet.metrics).toBeUndefined()
    expect(await quiet.start()).toBeUndefined()
  })
})

describe('the depth of the queue', () => {
  const NOTHING = {
    'webhook ready': 0,
    'webhook later': 0,
    'webhook held': 0,
    'daemon ready': 0,
    'daemon later': 0,
    'daemon held': 0,
  }

  it('tells what is ready, what waits and what is held, by kind of group', async () => {
    await clock.set('2026-11-05T12:00:00Z')
    const at = new TriggerFixture(database, await createTenant(database, 2), clock)
    await at.create({ account: 0 })
    await at.create({ account: 1 })
    await at.create({ account: 0, destination: { kind: 'daemon', groupKey: 'warehouse' } })
    await clock.advance(10_000)
    await at.fire()
    const [run] = await at.claim()
    const depth = async () =>
      Object.fromEntries(
        (await countRunBacklog(database.pool)).map(({ group, state, count }) => [`${group} ${state}`, count]),
      )
    expect(await depth()).toEqual({ ...NOTHING, 'webhook ready': 1, 'webhook held': 1, 'daemon ready': 1 })
    if (run === undefined) throw new Error('no run')
    await at.queue.settle([{ ...run, outcome: { kind: 'rate_limited', afterMs: 60_000 } }])
    expect(await depth()).toEqual({ ...NOTHING, 'webhook ready': 1, 'webhook later': 1, 'daemon ready': 1 })
  })
})
