import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { ClaimLongPolls, registerDaemon } from '../../../../src/sync/daemons/index.ts'
import { touchDaemon } from '../../../../src/sync/daemons/sql.ts'
import { RunQueue } from '../../../../src/sync/runs/index.ts'
import { daemonQueueGroup } from '../../../../src/sync/runs/run.ts'
import { testDatabase } from '../../../support/database.ts'
import { type ManualClock, manualClock } from '../../../support/manual-clock.ts'
import { createTenant, type Tenant } from '../../../support/tenant.ts'

const { database } = await testDatabase()
const WAIT_MS = 25_000

const POLL_MS = 1_000

let tenant: Tenant
let clock: ManualClock
let longPolls: ClaimLongPolls
let polls: number

beforeEach(async () => {
  await execute(database.pool, 'truncate run_queue, run_lease, daemon')
  tenant = await createTenant(database, 3)
  clock = manualClock()
  polls = 0
  const counted = {
    get pool() {
      polls++
      return database.pool
    },
  }
  longPolls = new ClaimLongPolls({ database: counted, clock })
})

afterAll(() => longPolls.close())

/** Lets one poll happen; resolves when the next one is scheduled, which is never when no daemon waits. */
async function poll(): Promise<void> {
  await clock.pass(POLL_MS)
  await clock.untilSleeping(POLL_MS)
}

/** Registers a daemon that waits for runs; `state.ended` is how its wait ended. */
async function wait(groupKey = 'g', regions: readonly string[] = [], signal = new AbortController().signal) {
  const { environmentId } = tenant
  const about = { label: 'host', groupKey, regions, version: '' }
  const daemonId = await registerDaemon(database.pool, environmentId, about)
  const state: { ended: boolean | string | undefined } = { ended: undefined }
  const who = { environmentId, daemonId, group: daemonQueueGroup(environmentId, groupKey), regions }
  const over = longPolls.wait(who, WAIT_MS, signal).then(
    (mayClaim) => {
      state.ended = mayClaim
    },
    (error) => {
      state.ended = String(error.reason ?? error.message)
    },
  )
  return { daemonId, state, over }
}

async function enqueue(account: number, fields: { readonly groupKey?: string; readonly region?: string } = {}) {
  const { groupKey = 'g', region = 'wnam' } = fields
  const { environmentId, accountIds } = tenant
  const queue = new RunQueue({ database, random: () => 0.5 })
  const run = { id: newId(), environmentId, triggerId: null, integratedAccountId: accountIds[account] ?? '', region }
  const destination = { kind: 'daemon', groupKey } as const
  await database.transaction((tx) => queue.enqueue(tx, [{ ...run, scheduledFor: new Date(), destination }]))
}

describe('a long poll for runs', () => {
  it('ends for as many daemons as there are runs, in the order of their arrival', async () => {
    const waiting = [await wait(), await wait(), await wait()]
    await poll()
    expect(waiting.map(({ state }) => state.ended)).toEqual([undefined, undefined, undefined])
    await enqueue(0)
    await enqueue(1)
    await poll()
    expect(waiting.map(({ state }) => state.ended)).toEqual([true, true, undefined])
  })

  it('does not end for a run of a busy account, of another group or of another region', async () => {
    const { state, over } = await wait('g', ['eu', 'apac'])
    await enqueue(0, { groupKey: 'other', region: 'eu' })
    await enqueue(1)
    await enqueue(2, { region: 'eu' })
    await execute(
      database.pool,
      `insert into run_lease (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, lease_id,
         holder, attempt, claimed_at, expires_at)
       values (:runId, now(), :environmentId, :integratedAccountId, 'eu', 'webhook', :leaseId, 'worker', 1, now(), now())`,
      {
        runId: newId(),
        environmentId: tenant.environmentId,
        integratedAccountId: tenant.accountIds[2] ?? '',
        leaseId: newId(),
      },
    )
    await poll()
    expect(state.ended).toBe(undefined)
    await execute(database.pool, 'delete from run_lease')
    await clock.pass(POLL_MS)
    await over
    expect(state.ended).toBe(true)
  })

  it('costs one database poll for all waiting daemons, and none when there are none', async () => {
    expect(polls).toBe(0)
    const clients = new AbortController()
    const { signal } = clients
    const waiting = [await wait('g', [], signal), await wait('other', [], signal), await wait('g', ['eu'], signal)]
    await poll()
    expect(polls).toBe(1)
    clients.abort()
    await Promise.all(waiting.map(({ over }) => over))
    await clock.pass(POLL_MS)
    await new Promise(setImmediate)
    expect(polls).toBe(1)
  })

  it('ends without a run when its time is up', async () => {
    const { state, over } = await wait()
    await clock.pass(WAIT_MS)
    await over
    expect(state.ended).toBe(false)
  })

  it('ends when the client disconnects', async () => {
    const client = new AbortController()
    const { state, over } = await wait('g', [], client.signal)
    client.abort()
    await over
    expect(state.ended).toBe(false)
  })

  it('ends at once for a daemon that drains, and at the next poll when another server received that heartbeat', async () => {
    const [here, elsewhere, other] = [await wait(), await wait(), await wait()]
    longPolls.endWaitsOf(here.daemonId)
    await here.over
    expect(here.state.ended).toBe(false)
    await touchDaemon(database.pool, tenant.environmentId, elsewhere.daemonId, true)
    await poll()
    expect([elsewhere.state.ended, other.state.ended]).toEqual([false, undefined])
  })

  it('ends when the server shuts down, as does every later one', async () => {
    const { state, over } = await wait()
    longPolls.close()
    await over
    expect(state.ended).toBe(false)
    const late = await wait()
    await late.over
    expect(late.state.ended).toBe(false)
  })

  it('fails with the error of a poll, and works again when it is repeated', async () => {
    const { state, over } = await wait()
    await execute(database.pool, 'alter table run_queue rename to run_queue_away')
    await clock.pass(POLL_MS)
    await over
    await execute(database.pool, 'alter table run_queue_away rename to run_queue')
    expect(state.ended).toContain('run_queue')
    const again = await wait()
    await enqueue(0)
    await clock.pass(POLL_MS)
    await again.over
    expect(again.state.ended).toBe(true)
  })

  it('leaves capacity for the daemons of another environment', async () => {
    const who = { environmentId: tenant.environmentId, daemonId: newId(), group: 'g', regions: [] }
    const { signal } = new AbortController()
    const all = Array.from({ length: 500 }, () => longPolls.wait(who, WAIT_MS, signal))
    await expect(longPolls.wait(who, WAIT_MS, signal)).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    all.push(longPolls.wait({ ...who, environmentId: newId() }, WAIT_MS, signal))
    longPolls.close()
    expect(new Set(await Promise.all(all))).toEqual(new Set([false]))
  })
})
