import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/base/index.ts'
import { ClaimLongPolls, registerDaemon } from '../../src/daemons/index.ts'
import { touchDaemon } from '../../src/daemons/sql.ts'
import { execute } from '../../src/database/database.ts'
import { daemonQueueGroup, RunQueue } from '../../src/runs/index.ts'
import { testDatabase } from '../support/database.ts'
import { createTenant, type Tenant } from '../support/tenant.ts'

const { database } = await testDatabase()
const WAIT_MS = 25_000

/** Sleeps that end when the test says so; those for a second are between looks. */
class HeldClock {
  #sleeps: { readonly ms: number; readonly wake: () => void }[] = []
  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const sleep = { ms, wake: resolve }
      this.#sleeps.push(sleep)
      if (signal?.aborted) resolve()
      signal?.addEventListener('abort', () => resolve(), { once: true })
    })
  /** Ends every sleep of that length there is. */
  pass(ms: number): void {
    const [over, left] = [
      this.#sleeps.filter((sleep) => sleep.ms === ms),
      this.#sleeps.filter((sleep) => sleep.ms !== ms),
    ]
    this.#sleeps = left
    for (const { wake } of over) wake()
  }
  /** Looks once; resolves when another look is slept for, which is never when nobody waits any more. */
  async look(): Promise<void> {
    this.pass(1_000)
    while (!this.#sleeps.some(({ ms }) => ms === 1_000)) await new Promise(setImmediate)
  }
}

let tenant: Tenant
let clock: HeldClock
let waits: ClaimLongPolls
let looks: number

beforeEach(async () => {
  await execute(database.pool, 'truncate run_queue, run_lease, daemon')
  tenant = await createTenant(database, 3)
  clock = new HeldClock()
  looks = 0
  const counted = {
    get pool() {
      looks++
      return database.pool
    },
  }
  waits = new ClaimLongPolls({ database: counted, clock })
})

afterAll(() => waits.close())

/** A daemon of a group that waits; how its wait ended once it has. */
async function wait(groupKey = 'g', regions: readonly string[] = [], signal = new AbortController().signal) {
  const { environmentId } = tenant
  const about = { label: 'host', groupKey, regions, version: '' }
  const daemonId = await registerDaemon(database.pool, environmentId, about)
  const state: { ended: boolean | string | undefined } = { ended: undefined }
  const who = { environmentId, daemonId, group: daemonQueueGroup(environmentId, groupKey), regions }
  const over = waits.wait(who, WAIT_MS, signal).then(
    (isWorth) => {
      state.ended = isWorth
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

describe('waiting for runs', () => {
  it('ends for as many as there are runs, in the order in which they came', async () => {
    const waiting = [await wait(), await wait(), await wait()]
    await clock.look()
    expect(waiting.map(({ state }) => state.ended)).toEqual([undefined, undefined, undefined])
    await enqueue(0)
    await enqueue(1)
    await clock.look()
    expect(waiting.map(({ state }) => state.ended)).toEqual([true, true, undefined])
  })

  it('does not end for a run of an account that runs already, of another group or another region', async () => {
    const { state, over } = await wait('g', ['eu', 'apac'])
    await enqueue(0, { groupKey: 'other', region: 'eu' })
    await enqueue(1)
    await enqueue(2, { region: 'eu' })
    await execute(
      database.pool,
      `insert into run_lease (run_id, scheduled_for, environment_id, integrated_account_id, region, queue_group, lease_id,
         holder, attempt, claimed_at, expires_at)
       values (?, now(), ?, ?, 'eu', 'webhook', ?, 'worker', 1, now(), now())`,
      [newId(), tenant.environmentId, tenant.accountIds[2] ?? '', newId()],
    )
    await clock.look()
    expect(state.ended).toBe(undefined)
    await execute(database.pool, 'delete from run_lease')
    clock.pass(1_000)
    await over
    expect(state.ended).toBe(true)
  })

  it('costs one look for all, however many wait, and none when nobody does', async () => {
    expect(looks).toBe(0)
    const waiting = [await wait(), await wait('other'), await wait('g', ['eu'])]
    await clock.look()
    expect(looks).toBe(1)
    clock.pass(WAIT_MS)
    await Promise.all(waiting.map(({ over }) => over))
    expect(waiting.map(({ state }) => state.ended)).toEqual([false, false, false])
    clock.pass(1_000)
    await new Promise(setImmediate)
    expect(looks).toBe(1)
  })

  it('ends when the claimant goes away', async () => {
    const client = new AbortController()
    const { state, over } = await wait('g', [], client.signal)
    client.abort()
    await over
    expect(state.ended).toBe(false)
  })

  it('ends at once for a daemon that drains, and at the next look when another process was told', async () => {
    const [here, elsewhere, other] = [await wait(), await wait(), await wait()]
    waits.release(here.daemonId)
    await here.over
    expect(here.state.ended).toBe(false)
    await touchDaemon(database.pool, tenant.environmentId, elsewhere.daemonId, true)
    await clock.look()
    expect([elsewhere.state.ended, other.state.ended]).toEqual([false, undefined])
  })

  it('ends when the process does, as does every later one', async () => {
    const { state, over } = await wait()
    waits.close()
    await over
    expect(state.ended).toBe(false)
    const late = await wait()
    await late.over
    expect(late.state.ended).toBe(false)
  })

  it('fails with what a look failed with, and is looked after again when asked anew', async () => {
    const { state, over } = await wait()
    await execute(database.pool, 'alter table run_queue rename to run_queue_away')
    clock.pass(1_000)
    await over
    await execute(database.pool, 'alter table run_queue_away rename to run_queue')
    expect(state.ended).toContain('run_queue')
    const again = await wait()
    await enqueue(0)
    clock.pass(1_000)
    await again.over
    expect(again.state.ended).toBe(true)
  })

  it('leaves places for the daemons of another environment', async () => {
    const who = { environmentId: tenant.environmentId, daemonId: newId(), group: 'g', regions: [] }
    const { signal } = new AbortController()
    const all = Array.from({ length: 500 }, () => waits.wait(who, WAIT_MS, signal))
    await expect(waits.wait(who, WAIT_MS, signal)).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    all.push(waits.wait({ ...who, environmentId: newId() }, WAIT_MS, signal))
    waits.close()
    expect(new Set(await Promise.all(all))).toEqual(new Set([false]))
  })
})
