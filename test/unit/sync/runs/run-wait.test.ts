import { beforeEach, describe, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { Lease, Outcome } from '../../../../src/foundation/queue/index.ts'
import { registerDaemon } from '../../../../src/sync/daemons/index.ts'
import { touchDaemon } from '../../../../src/sync/daemons/sql.ts'
import {
  createRun,
  deleteWorker,
  getRun,
  listRuns,
  type QueuedRun,
  type RunDestination,
  RunQueue,
  touchWorker,
} from '../../../../src/sync/runs/index.ts'
import { queueGroupOf, type Run, WEBHOOK_QUEUE_GROUP } from '../../../../src/sync/runs/run.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant, type Tenant } from '../../../support/tenant.ts'

const { database, clock } = await clockedDatabase()
const GROUP: RunDestination = { kind: 'daemon', groupKey: 'warehouse' }
const ERROR = { reason: 'UPSTREAM_UNREACHABLE', message: 'connection refused' }

let tenant: Tenant
let queue: RunQueue

beforeEach(async () => {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease, run_checkpoint, daemon, worker')
  tenant = await createTenant(database, 2)
  await clock.stop()
  queue = new RunQueue({ database, random: () => 0.5 })
  await touchWorker(database.pool, 'worker-1', [])
})

async function create(account = 0, destination?: RunDestination): Promise<Run> {
  const { environmentId, syncJobId, webhookId, accountIds } = tenant
  const deps = { queue, assertMapped: async () => undefined, resolveArgs: async () => ({}) }
  const input = { syncJobId, integratedAccountId: accountIds[account] ?? '' }
  return await database.transaction((tx) =>
    createRun(deps, tx, environmentId, { ...input, destination: destination ?? { kind: 'webhook', webhookId } }),
  )
}

async function claimOne(group = WEBHOOK_QUEUE_GROUP): Promise<Lease<QueuedRun>> {
  const [run] = await queue.claim({ group, holder: 'worker-1', limit: 1 })
  if (run === undefined) throw new Error('nothing to claim')
  return run
}

async function settle(run: Lease<QueuedRun>, outcome: Outcome): Promise<void> {
  await queue.settle([{ ...run, outcome }])
}

const waitingOf = async (id: string) => (await getRun(database.pool, tenant.environmentId, id)).waiting

describe('a run that waits says for what', () => {
  it('for its next attempt, until when, and why the last one failed', async () => {
    const { id } = await create()
    await settle(await claimOne(), { kind: 'retry', error: ERROR })
    expect(await waitingOf(id)).toEqual({
      reason: 'retry',
      message: 'waits for its next attempt: connection refused',
      until: new Date(clock.now().getTime() + 3_750),
      blockingRunId: undefined,
    })
  })

  it.each([
    [undefined, 'rate_limited', 'the third party asked to'],
    [ERROR, 'destination_unavailable', 'its webhook: connection refused'],
  ])('for what asked to wait (%j)', async (error, reason, message) => {
    const { id } = await create()
    await settle(await claimOne(), { kind: 'rate_limited', afterMs: 60_000, ...(error && { error }) })
    const waiting = await waitingOf(id)
    expect(waiting).toMatchObject({ reason, until: new Date(clock.now().getTime() + 60_000) })
    expect(waiting?.message).toContain(message)
  })

  it('for the run of its account that runs, by its id', async () => {
    const [running, waiting] = [await create(), await create()]
    expect((await claimOne()).id).toBe(running.id)
    expect(await waitingOf(waiting.id)).toMatchObject({ reason: 'account_busy', blockingRunId: running.id })
    expect(await waitingOf(running.id)).toBeUndefined()
  })

  it('for a worker of its region, and then for one that has capacity', async () => {
    const { id } = await create()
    expect(await waitingOf(id)).toMatchObject({ reason: 'capacity' })
    await touchWorker(database.pool, 'worker-1', ['eu'])
    expect(await waitingOf(id)).toMatchObject({ reason: 'no_worker', message: expect.stringContaining('region wnam') })
    await touchWorker(database.pool, 'worker-2', ['eu', 'wnam'])
    expect(await waitingOf(id)).toMatchObject({ reason: 'capacity' })
    await deleteWorker(database.pool, 'worker-2')
    expect(await waitingOf(id)).toMatchObject({ reason: 'no_worker' })
  })

  it('for a worker once the only one was not heard of for the length of a lease', async () => {
    const { id } = await create()
    await clock.advance(30_000)
    expect(await waitingOf(id)).toMatchObject({ reason: 'no_worker' })
  })

  it('for a daemon of its group and region that takes runs', async () => {
    const { id } = await create(0, GROUP)
    const { environmentId } = tenant
    expect(await waitingOf(id)).toMatchObject({ reason: 'no_daemon', message: expect.stringContaining('warehouse') })
    const daemon = { label: 'd', version: '1', regions: [] as string[] }
    await registerDaemon(database.pool, environmentId, { ...daemon, groupKey: 'other' })
    await registerDaemon(database.pool, environmentId, { ...daemon, groupKey: 'warehouse', regions: ['eu'] })
    expect(await waitingOf(id)).toMatchObject({ reason: 'no_daemon' })
    const daemonId = await registerDaemon(database.pool, environmentId, { ...daemon, groupKey: 'warehouse' })
    expect(await waitingOf(id)).toMatchObject({ reason: 'capacity' })
    await touchDaemon(database.pool, environmentId, daemonId, true)
    expect(await waitingOf(id)).toMatchObject({ reason: 'no_daemon' })
  })

  it('for the rate limit of the third party while its worker waits for it, and no longer', async () => {
    const { id } = await create()
    const lease = await claimOne()
    await queue.showWait(lease, 12_000)
    const until = new Date(clock.now().getTime() + 12_000)
    expect(await waitingOf(id)).toMatchObject({ reason: 'rate_limited', until, blockingRunId: undefined })
    const { items } = await listRuns(database.pool, tenant.environmentId, {}, {})
    expect(items).toMatchObject([{ id, status: 'running', waiting: { reason: 'rate_limited', until } }])
    await queue.save(lease, {}, [])
    expect(await waitingOf(id)).toMatchObject({ until }) // of the page before: it is delivered meanwhile
    await clock.advance(12_000)
    expect(await waitingOf(id)).toBeUndefined()
  })

  it('for nothing that the holder of an earlier lease reports, or that one did', async () => {
    const { id } = await create()
    const lease = await claimOne()
    await queue.showWait(lease, 20_000)
    await settle(lease, { kind: 'released' })
    await claimOne()
    expect(await waitingOf(id)).toBeUndefined()
    await queue.showWait(lease, 20_000)
    expect(await waitingOf(id)).toBeUndefined()
  })

  it('no longer once it runs or is over', async () => {
    const { id } = await create(0, GROUP)
    const lease = await claimOne(queueGroupOf(tenant.environmentId, GROUP))
    expect(await waitingOf(id)).toBeUndefined()
    await settle(lease, { kind: 'completed' })
    expect(await waitingOf(id)).toBeUndefined()
  })

  it('in a list as well', async () => {
    const [running, waiting] = [await create(), await create()]
    const other = await create(1)
    await claimOne()
    const { items } = await listRuns(database.pool, tenant.environmentId, {}, {})
    const reasons = new Map(items.map((run) => [run.id, run.waiting?.reason]))
    expect([running, waiting, other].map(({ id }) => reasons.get(id))).toEqual([undefined, 'account_busy', 'capacity'])
  })
})
