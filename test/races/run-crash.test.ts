import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRun, getRun, RunQueue } from '../../src/sync/runs/index.ts'
import { type Run, WEBHOOK_QUEUE_GROUP } from '../../src/sync/runs/run.ts'
import { type DurableDatabase, startDurableDatabase } from '../support/durable-database.ts'
import { createTenant, readOne, type Tenant } from '../support/tenant.ts'

/** A server of its own with durable settings, because it is crashed. */
let durable: DurableDatabase
let tenant: Tenant
let queue: RunQueue

beforeAll(async () => {
  // The WAL writer would make asynchronous commits durable by itself within moments; here it comes too late for that.
  durable = await startDurableDatabase(2, ['wal_writer_delay=10s', 'wal_writer_flush_after=1GB'])
  tenant = await createTenant(durable.database, 3)
  queue = new RunQueue({ database: durable.database, random: () => 0.5 })
})
afterAll(async () => await durable?.[Symbol.asyncDispose]())

async function create(account: number): Promise<Run> {
  const { environmentId, syncJobId, webhookId, accountIds } = tenant
  const deps = { queue, assertMapped: async () => undefined, resolveArgs: async () => ({}) }
  const input = { syncJobId, integratedAccountId: accountIds[account] ?? '' }
  return await durable.database.transaction((tx) =>
    createRun(deps, tx, environmentId, { ...input, destination: { kind: 'webhook', webhookId } }),
  )
}

const claim = (holder: string) => queue.claim({ group: WEBHOOK_QUEUE_GROUP, holder, limit: 1 })
const read = (id: string) => getRun(durable.database.pool, tenant.environmentId, id)

describe('a crash of the database', () => {
  it('right after a claim undoes neither the lease nor the attempt, and frees no account', async () => {
    const { id } = await create(0)
    const second = await create(0)
    const [lease] = await claim('first')
    await durable.crash()
    expect(await claim('second')).toEqual([])
    expect(await read(id)).toMatchObject({ status: 'running', attempt: 1, startedAt: lease?.startedAt })
    expect(await queue.heartbeat([lease ?? { id, leaseId: id }])).toMatchObject([{ kind: 'held', id }])
    expect(await read(second.id)).toMatchObject({ status: 'created', attempt: 0 })
  })

  it('right after a heartbeat does not shorten the lease', async () => {
    const { id } = await create(1)
    const [lease] = await claim('first')
    const [renewed] = await queue.heartbeat([lease ?? { id, leaseId: id }])
    await durable.crash()
    const sql = 'select expires_at as "expiresAt" from run_lease where run_id = :id'
    const { expiresAt } = await readOne<{ expiresAt: Date }>(durable.database, sql, { id })
    expect({ expiresAt }).toEqual({ expiresAt: renewed?.kind === 'held' && renewed.expiresAt })
  })
})
