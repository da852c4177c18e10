import { beforeEach, describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { execute, logLoopErrors } from '../../../../src/foundation/database/index.ts'
import type { Lease } from '../../../../src/foundation/queue/index.ts'
import { silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import {
  createQueueLeases,
  createRun,
  type ExecuteRun,
  getRun,
  type QueuedRun,
  RunExecutor,
  RunQueue,
  stopRun,
} from '../../../../src/sync/runs/index.ts'
import { LeaseTimer } from '../../../../src/sync/runs/lease-timer.ts'
import type { Run, RunOutcome, RunProgress } from '../../../../src/sync/runs/run.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { createTenant, type Tenant } from '../../../support/tenant.ts'

const { database, clock } = await clockedDatabase()
const FAILURE = { reason: 'UPSTREAM_ERROR', message: 'it broke' }

let tenant: Tenant
let queue: RunQueue

beforeEach(async () => {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease, run_checkpoint, previous_run')
  tenant = await createTenant(database, 20)
  await clock.stop()
  queue = new RunQueue({ database, random: () => 0.5 })
})

interface ExecutorOptions {
  readonly queue?: Parameters<typeof createQueueLeases>[0]
  readonly regions?: readonly string[]
}

function executorOf(executeRun: ExecuteRun<Lease<QueuedRun>>, { queue: given = queue, regions }: ExecutorOptions = {}) {
  return new RunExecutor({
    leases: createQueueLeases(given, { holder: newId(), regions }),
    executeRun,
    clock: systemClock,
    random: () => 0.5,
    onError: logLoopErrors(silentLogger),
    logger: silentLogger,
    concurrency: 4,
  })
}

async function create(account = 0): Promise<Run> {
  const { environmentId, syncJobId, webhookId, accountIds } = tenant
  const deps = { queue, assertMapped: async () => undefined, resolveArgs: async () => ({}) }
  const destination = { kind: 'webhook', webhookId } as const
  const input = { syncJobId, integratedAccountId: accountIds[account] ?? '', destination }
  return await database.transaction((tx) => createRun(deps, tx, environmentId, input))
}

const read = (id: string) => getRun(database.pool, tenant.environmentId, id)

/** A promise and its resolver. */
function gate<Value = void>() {
  return Promise.withResolvers<Value>()
}

/** An error as the driver raises it while the server is away. */
function outage(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

describe('an executor', () => {
  it.each<[RunOutcome, Run['status']]>([
    [{ kind: 'completed' }, 'completed'],
    [{ kind: 'failed', error: FAILURE }, 'failed'],
    [{ kind: 'retry', error: FAILURE }, 'created'],
    [{ kind: 'rate_limited', afterMs: 1000 }, 'rate_limited'],
    [{ kind: 'stopped' }, 'stopped'],
  ])('settles a run as its execution ended: %o', async (outcome, status) => {
    const { id } = await create()
    const executor = executorOf(async () => outcome)
    await executor.claimOnce()
    await executor.drain(10_000)
    expect(await read(id)).toMatchObject({ status })
    expect(executor.stats).toEqual({
      running: 0,
      claimed: 1,
      settled: 1,
      leasesLost: 0,
      outcomes: { [status]: 1 },
      pages: 0,
      records: 0,
    })
  })

  it('counts what it delivered, and not what an attempt before it did', async () => {
    await create()
    const stats = (pages: number) => ({
      resource: 'repos',
      method: 'list',
      complete: false,
      pages,
      fetched: pages * 100,
      delivered: pages * 99,
      failed: pages,
    })
    const first = executorOf(async (_, progress) => {
      await progress.save({}, [stats(1)])
      await progress.save({}, [stats(2)])
      return { kind: 'rate_limited', afterMs: 0 }
    })
    await first.claimOnce()
    await first.drain(10_000)
    expect(first.stats).toMatchObject({ pages: 2, records: 198 })
    const second = executorOf(async (_, progress) => {
      await progress.save({}, [stats(3)])
      return { kind: 'completed' }
    })
    await second.claimOnce()
    await second.drain(10_000)
    expect(second.stats).toMatchObject({ pages: 1, records: 99 })
  })

  it('executes as many at once as it may, and takes the next when one ends', async () => {
    for (let account = 0; account < 12; account++) await create(account)
    let running = 0
    let most = 0
    const done = gate()
    let finished = 0
    const executor = executorOf(async () => {
      running++
      most = Math.max(most, running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      if (++finished === 12) done.resolve()
      return { kind: 'completed' }
    })
    executor.start()
    await done.promise
    await executor.drain(10_000)
    expect(most).toBe(4)
    expect(executor.stats.settled).toBe(12)
  })

  it('keeps the lease on a run that it took again while its first execution was still ending', async () => {
    await create()
    const ends = [gate(), gate()]
    const executor = executorOf(async ({ attempt }) => {
      await ends[attempt - 1]?.promise
      return { kind: 'completed' }
    })
    await executor.claimOnce()
    await clock.advance(30_000)
    await queue.reap()
    await executor.claimOnce()
    ends[0]?.resolve()
    while (executor.stats.leasesLost === 0) await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(20_000)
    await executor.heartbeatOnce()
    await clock.advance(20_000)
    expect(await queue.reap()).toBe(0)
    ends[1]?.resolve()
    await executor.drain(10_000)
    expect(executor.stats).toMatchObject({ settled: 1, leasesLost: 1 })
  })

  it('tries a run again whose execution throws a bug, and says no more than that', async () => {
    const { id } = await create()
    const executor = executorOf(async () => {
      throw new Error('a secret detail')
    })
    await executor.claimOnce()
    await executor.drain(10_000)
    expect(await read(id)).toMatchObject({ status: 'created', error: { reason: 'INTERNAL' } })
    expect(JSON.stringify(await read(id))).not.toContain('secret')
  })

  it('saves progress with the lease and passes a request to stop on', async () => {
    const { id } = await create()
    const first = gate()
    const more = gate()
    const executor = executorOf(async (_, progress) => {
      expect(await progress.save({ page: 1 }, [])).toBe('continue')
      first.resolve()
      await more.promise
      expect(await progress.save({ page: 2 }, [])).toBe('stop')
      return { kind: 'stopped' }
    })
    await executor.claimOnce()
    await first.promise
    await database.transaction((tx) => stopRun(tx, tenant.environmentId, id))
    more.resolve()
    await executor.drain(10_000)
    expect(await read(id)).toMatchObject({ status: 'stopped' })
  })

  it('aborts a run whose lease is another holder’s, and writes nothing for it', async () => {
    const { id } = await create()
    const began = gate()
    let progress: RunProgress | undefined
    const executor = executorOf(async (_, given, { signal }) => {
      progress = given
      began.resolve()
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      return { kind: 'completed' }
    })
    await executor.claimOnce()
    await began.promise
    await clock.advance(30_000)
    await queue.reap()
    const [other] = await queue.claim({ group: 'webhook', holder: 'other', limit: 1 })
    expect(other).toMatchObject({ id, attempt: 2 })
    await executor.heartbeatOnce()
    await executor.drain(10_000)
    expect(executor.stats).toMatchObject({ settled: 0, leasesLost: 1 })
    await expect(progress?.save({ stale: true }, [])).rejects.toMatchObject({ reason: 'LEASE_LOST' })
    expect(await read(id)).toMatchObject({ status: 'running', attempt: 2 })
  })

  it('keeps leases alive with its heartbeat', async () => {
    await create()
    const [began, end] = [gate(), gate()]
    const executor = executorOf(async () => {
      began.resolve()
      await end.promise
      return { kind: 'completed' }
    })
    await executor.claimOnce()
    await began.promise
    await clock.advance(20_000)
    await executor.heartbeatOnce()
    await clock.advance(20_000)
    expect(await queue.reap()).toBe(0)
    end.resolve()
    await executor.drain(10_000)
    expect(executor.stats.settled).toBe(1)
  })

  it('repeats writes while the database is away', async () => {
    const { id } = await create()
    let [saves, settles] = [0, 0]
    const flaky = {
      claim: queue.claim.bind(queue),
      heartbeat: queue.heartbeat.bind(queue),
      save: async (...given: Parameters<RunQueue['save']>) => {
        if (++saves <= 2) throw outage()
        return await queue.save(...given)
      },
      showWait: async () => {
        throw outage()
      },
      settle: async (...given: Parameters<RunQueue['settle']>) => {
        if (++settles <= 2) throw outage()
        return await queue.settle(...given)
      },
    }
    const executor = executorOf(
      async (_, progress) => {
        await progress.save({ page: 1 }, [])
        return { kind: 'completed' }
      },
      { queue: flaky },
    )
    await executor.claimOnce()
    await executor.drain(10_000)
    expect(await read(id)).toMatchObject({ status: 'completed' })
    expect([saves, settles]).toEqual([3, 3])
  })

  it('shows that a run waits for a rate limit, and completes one whose wait cannot be shown', async () => {
    const { id } = await create()
    const shown = gate()
    const failing = {
      claim: queue.claim.bind(queue),
      heartbeat: queue.heartbeat.bind(queue),
      save: queue.save.bind(queue),
      settle: queue.settle.bind(queue),
      showWait: async (...given: Parameters<RunQueue['showWait']>) => {
        await queue.showWait(...given)
        shown.resolve()
        throw outage()
      },
    }
    let waiting: unknown
    const executor = executorOf(
      async (_, progress) => {
        progress.showWait(5_000)
        await shown.promise
        waiting = (await read(id)).waiting
        return { kind: 'completed' }
      },
      { queue: failing },
    )
    await executor.claimOnce()
    await executor.drain(10_000)
    expect(waiting).toMatchObject({ reason: 'rate_limited', until: new Date(clock.now().getTime() + 5_000) })
    expect(await read(id)).toMatchObject({ status: 'completed' })
  })

  it('takes runs of its regions alone', async () => {
    await create()
    const executor = executorOf(async () => ({ kind: 'completed' }), { regions: ['eu'] })
    await executor.claimOnce()
    expect(executor.stats.claimed).toBe(0)
    await executor.drain(0)
  })
})

describe('a drain', () => {
  it('hands a run back at its next page without counting an attempt, and another executor resumes it', async () => {
    const { id } = await create()
    const began = gate()
    const next = gate()
    const first = executorOf(async (_, progress) => {
      began.resolve()
      await next.promise
      return (await progress.save({ page: 7 }, [])) === 'stop' ? { kind: 'stopped' } : { kind: 'completed' }
    })
    await first.claimOnce()
    await began.promise
    const drained = first.drain(10_000)
    next.resolve()
    await drained
    expect(await read(id)).toMatchObject({ status: 'created', attempt: 0 })

    let resumed: Lease<QueuedRun> | undefined
    const second = executorOf(async (run) => {
      resumed = run
      return { kind: 'completed' }
    })
    await second.claimOnce()
    await second.drain(10_000)
    expect(resumed).toMatchObject({ id, attempt: 1, checkpoint: { page: 7 } })
    expect(await read(id)).toMatchObject({ status: 'completed' })
  })

  it('interrupts what does not end in time, and hands that back too', async () => {
    const { id } = await create()
    const began = gate()
    const executor = executorOf(async (_, __, { signal }) => {
      began.resolve()
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      return { kind: 'stopped' }
    })
    await executor.claimOnce()
    await began.promise
    await executor.drain(1)
    expect(await read(id)).toMatchObject({ status: 'created', attempt: 0 })
  })

  it('claims nothing more', async () => {
    const executor = executorOf(async () => ({ kind: 'completed' }))
    await executor.drain(0)
    await create()
    await executor.claimOnce()
    expect(executor.stats.claimed).toBe(0)
  })
})

describe('a held run', () => {
  const claimed = { id: newId(), leaseId: newId() } as Lease<QueuedRun>

  it('is lost here when its lease was not renewed in time', async () => {
    const time = manualClock()
    const held = new LeaseTimer(claimed, time, 30_000, performance.now())
    time.move(30_000)
    await Promise.resolve()
    await Promise.resolve()
    expect(held.signal.reason).toMatchObject({ reason: 'LEASE_LOST' })
  })

  it('continues when its lease was renewed', async () => {
    const time = manualClock()
    const held = new LeaseTimer(claimed, time, 30_000, performance.now())
    time.move(20_000)
    held.renew(performance.now())
    time.move(20_000)
    await Promise.resolve()
    await Promise.resolve()
    expect(held.signal.aborted).toBe(false)
    held.release()
  })
})
