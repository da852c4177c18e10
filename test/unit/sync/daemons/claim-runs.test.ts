import { beforeEach, describe, expect, it } from 'vitest'
import { Failure, newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { LeaseKey } from '../../../../src/foundation/queue/index.ts'
import type { SyncableAccount } from '../../../../src/platform/accounts/index.ts'
import {
  ClaimLongPolls,
  claimRuns,
  type DaemonsDeps,
  heartbeat,
  listDaemons,
  pruneDaemons,
  registerDaemon,
  reportProgress,
} from '../../../../src/sync/daemons/index.ts'
import { createRun, getRun, RunQueue } from '../../../../src/sync/runs/index.ts'
import { clockedDatabase } from '../../../support/database.ts'
import { createTenant, type Tenant } from '../../../support/tenant.ts'
import { NO_UNIFIED } from '../jobs/no-unified.ts'

const { database, clock } = await clockedDatabase()
const STATS = {
  resource: 'repos',
  method: 'list',
  pages: 1,
  fetched: 100,
  delivered: 100,
  failed: 0,
  complete: false,
}
const signal = new AbortController().signal

let tenant: Tenant
let queue: RunQueue
let deps: DaemonsDeps
let defects: string[]
/** Result of loading an account. */
let load: () => SyncableAccount

beforeEach(async () => {
  await execute(database.pool, 'truncate sync_job_run, run_queue, run_lease, run_checkpoint, daemon')
  tenant = await createTenant(database, 2)
  await clock.stop()
  queue = new RunQueue({ database, random: () => 0.5 })
  const empty = { actions: new Map(), resources: new Map() }
  const definition = { plan: empty, environmentVariables: {} }
  const account = { tenantId: 'acme', context: {} }
  load = () => ({ account, definition }) as unknown as SyncableAccount
  defects = []
  deps = {
    database,
    queue,
    longPolls: new ClaimLongPolls({ database, clock: { sleep: () => new Promise(() => {}) } }),
    loadAccount: async () => load(),
    mappings: NO_UNIFIED.mappings,
    redactor: async () => (text) => text,
    onDefect: (_, runId) => {
      defects.push(runId)
    },
  }
})

async function create(account = 0): Promise<string> {
  const { environmentId, syncJobId, accountIds } = tenant
  const input = {
    syncJobId,
    integratedAccountId: accountIds[account] ?? '',
    destination: { kind: 'daemon', groupKey: 'g' } as const,
  }
  const runDeps = { queue, assertMapped: async () => undefined, resolveArgs: async () => ({}) }
  return (await database.transaction((tx) => createRun(runDeps, tx, environmentId, input))).id
}

const register = () =>
  registerDaemon(database.pool, tenant.environmentId, { label: 'host', groupKey: 'g', regions: [], version: '' })

const claim = (daemonId: string, until = signal) =>
  claimRuns(deps, tenant.environmentId, { daemonId, capacity: 9, waitMs: 0 }, until)

const read = (id: string) => getRun(database.pool, tenant.environmentId, id)

const keyOf = ([one]: Awaited<ReturnType<typeof claim>>): LeaseKey => ({
  id: one?.run.id ?? '',
  leaseId: one?.leaseId ?? '',
})

describe('a daemon that dies', () => {
  it('is replaced by another of its group at its checkpoint, and cannot write anything afterwards', async () => {
    const { environmentId } = tenant
    const id = await create()
    const [dead, heir] = [await register(), await register()]
    const stale = keyOf(await claim(dead))
    await reportProgress(deps, environmentId, stale, { checkpoint: { page: 3 }, stats: [STATS] })
    expect(await claim(heir)).toEqual([])

    await clock.advance(30_001)
    expect(await queue.reap()).toBe(1)
    const taken = await claim(heir)

    expect(taken).toMatchObject([{ run: { id, attempt: 2, resourceStats: [STATS] }, checkpoint: { page: 3 } }])
    const before = await read(id)
    const late = { checkpoint: { page: 4 }, stats: [] }
    await expect(reportProgress(deps, environmentId, stale, late)).rejects.toMatchObject({ reason: 'LEASE_LOST' })
    const beat = { daemonId: dead, isDraining: false, held: [stale, keyOf(taken)] }
    expect(await heartbeat(deps, environmentId, beat)).toMatchObject([{ kind: 'lost' }, { kind: 'held' }])
    expect(await read(id)).toEqual(before)
  })

  it('in its last attempt leaves no attempt for others', async () => {
    const id = await create()
    const daemon = await register()
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect(await claim(daemon)).toMatchObject([{ run: { id, attempt } }])
      await clock.advance(30_001)
      await queue.reap()
    }
    expect(await claim(daemon)).toEqual([])
    expect(await read(id)).toMatchObject({ status: 'failed', error: { reason: 'lease_expired' } })
  })

  it('is lost after the time of a lease, and deleted after a day', async () => {
    const [dead, alive] = [await register(), await register()]
    const unheardFor = (interval: string) =>
      execute(database.pool, `update daemon set last_seen_at = now() - :interval::interval where id = :dead`, {
        interval,
        dead,
      })
    // By id: two that register within a millisecond come in either order.
    const list = async () => {
      const all = await listDaemons(database.pool, tenant.environmentId, {}, { before: undefined, limit: 9 })
      return Object.fromEntries(all.map(({ id, status }) => [id, status]))
    }

    await unheardFor('31 seconds')
    expect(await list()).toEqual({ [alive]: 'online', [dead]: 'lost' })
    await unheardFor('23 hours 59 minutes')
    await pruneDaemons(database)
    expect(await list()).toEqual({ [alive]: 'online', [dead]: 'lost' })
    await unheardFor('24 hours 1 minute')
    expect(await pruneDaemons(database)).toBe(false)
    expect(await list()).toEqual({ [alive]: 'online' })
    await expect(claim(dead)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('a run that cannot be assigned', () => {
  it.each([
    ['the account may not be called', new Failure('INTEGRATION_DISABLED', 'off'), 'failed', 'INTEGRATION_DISABLED', 1],
    ['a bug', new TypeError('x is undefined'), 'created', 'INTERNAL', 1],
  ] as const)('because of %s ends its attempt', async (_, error, status, reason, attempt) => {
    const id = await create()
    load = () => {
      throw error
    }
    expect(await claim(await register())).toEqual([])
    expect(await read(id)).toMatchObject({ status, attempt, error: { reason } })
    expect(defects).toEqual(error instanceof Failure ? [] : [id])
  })

  it('because its daemon disconnected goes to the next one, and no attempt is counted', async () => {
    const id = await create()
    const client = new AbortController()
    const loaded = load
    load = () => {
      client.abort()
      return loaded()
    }
    expect(await claim(await register(), client.signal)).toEqual([])
    expect(await read(id)).toMatchObject({ status: 'created', attempt: 0 })
    load = loaded
    expect(await claim(await register())).toMatchObject([{ run: { id, attempt: 1 } }])
  })
})

describe('a claim', () => {
  it('returns no runs once the server shuts down', async () => {
    await create()
    deps.longPolls.close()
    expect(await claim(await register())).toEqual([])
    expect(await queue.claim({ group: `daemon:${tenant.environmentId}:g`, holder: newId(), limit: 1 })).toHaveLength(1)
  })

  it('claims nothing for a client that has disconnected', async () => {
    const id = await create()
    expect(await claim(await register(), AbortSignal.abort())).toEqual([])
    expect(await read(id)).toMatchObject({ status: 'created', version: 1 })
  })
})
