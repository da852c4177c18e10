import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { execute, query } from '../../src/foundation/database/index.ts'
import type { Lease, Outcome } from '../../src/foundation/queue/index.ts'
import {
  createRun,
  type QueuedRun,
  type RunDestination,
  RunQueue,
  retryRun,
  stopRun,
} from '../../src/sync/runs/index.ts'
import { queueGroupOf } from '../../src/sync/runs/run.ts'
import { caseCount } from '../support/case-count.ts'
import { beforeCommit, clockedDatabase } from '../support/database.ts'
import { createTenant, type Tenant } from '../support/tenant.ts'
import { QueueModel } from '../unit/foundation/queue/queue-model.ts'

const { database, clock } = await clockedDatabase()
const ACCOUNTS = 3
const STATS = { resource: 'repos', method: 'list', fetched: 0, delivered: 0, failed: 0, complete: false }
const FAILURE = { reason: 'UPSTREAM_ERROR', message: 'it broke' }
const TABLES = 'sync_job_run, run_queue, run_lease, run_checkpoint, previous_run'

type Destination = 'webhook' | 'daemon'
/** `lease` and `run` pick one of those there have been, lost and finished ones among them. */
type Step =
  | { readonly kind: 'enqueue'; readonly account: number; readonly to: Destination }
  | { readonly kind: 'claim'; readonly to: Destination; readonly limit: number; readonly claimants: number }
  | { readonly kind: 'heartbeat' }
  | { readonly kind: 'save'; readonly lease: number; readonly isProgress: boolean }
  | { readonly kind: 'settle'; readonly lease: number; readonly outcome: Outcome }
  | { readonly kind: 'crash while settling'; readonly lease: number; readonly outcome: Outcome }
  | { readonly kind: 'settle while reaping'; readonly lease: number; readonly outcome: Outcome }
  | { readonly kind: 'claim while reaping'; readonly to: Destination }
  | { readonly kind: 'stop'; readonly run: number }
  | { readonly kind: 'retry'; readonly run: number; readonly callers: number }
  | { readonly kind: 'reap'; readonly reapers: number }
  | { readonly kind: 'wait'; readonly seconds: number }
  | { readonly kind: 'clock back'; readonly seconds: number }

const any = fc.nat({ max: 1_000 })
const to = fc.constantFrom<Destination>('webhook', 'webhook', 'daemon')
const outcome = fc.oneof<fc.Arbitrary<Outcome>[]>(
  fc.constantFrom<Outcome>({ kind: 'completed' }, { kind: 'stopped' }, { kind: 'released' }),
  fc.constantFrom<Outcome>({ kind: 'failed', error: FAILURE }, { kind: 'retry', error: FAILURE }),
  fc.record({ kind: fc.constant('rate_limited' as const), afterMs: fc.integer({ min: 0, max: 60_000 }) }),
)
const few = fc.integer({ min: 1, max: 3 })

/** One kind of step and what belongs to it, drawn so often. */
function stepOf<Kind extends Step['kind']>(weight: number, kind: Kind, rest: PartsOf<Kind>) {
  const arbitrary = fc.record({ kind: fc.constant(kind), ...rest }) as unknown as fc.Arbitrary<Step>
  return { weight, arbitrary }
}

type PartsOf<Kind> = {
  readonly [Name in Exclude<keyof Extract<Step, { kind: Kind }>, 'kind'>]: fc.Arbitrary<
    Extract<Step, { kind: Kind }>[Name]
  >
}

const step = fc.oneof(
  stepOf(5, 'enqueue', { account: fc.nat({ max: ACCOUNTS - 1 }), to }),
  stepOf(7, 'claim', { to, limit: fc.integer({ min: 1, max: 5 }), claimants: few }),
  stepOf(3, 'heartbeat', {}),
  stepOf(3, 'save', { lease: any, isProgress: fc.boolean() }),
  stepOf(5, 'settle', { lease: any, outcome }),
  stepOf(1, 'crash while settling', { lease: any, outcome }),
  stepOf(2, 'settle while reaping', { lease: any, outcome }),
  stepOf(1, 'claim while reaping', { to }),
  stepOf(2, 'stop', { run: any }),
  stepOf(2, 'retry', { run: any, callers: few }),
  stepOf(3, 'reap', { reapers: few }),
  stepOf(5, 'wait', { seconds: fc.integer({ min: 1, max: 45 }) }),
  stepOf(1, 'clock back', { seconds: fc.integer({ min: 1, max: 20 }) }),
)

/** A queue and the model of it, under one clock. */
class Bench {
  readonly model = new QueueModel()
  readonly leases: Lease<QueuedRun>[] = []
  readonly #queue = new RunQueue({ database, random: () => 0.5 })
  readonly #tenant: Tenant

  constructor(tenant: Tenant) {
    this.#tenant = tenant
  }

  get nowMs(): number {
    return clock.now().getTime()
  }

  async perform(each: Step): Promise<void> {
    switch (each.kind) {
      case 'enqueue':
        return await this.#enqueue(each.account, this.#destination(each.to))
      case 'claim':
        return await this.#claim(this.#group(each.to), each.limit, each.claimants)
      case 'heartbeat':
        return await this.#heartbeat()
      case 'save':
        return await this.#save(this.leases[each.lease % this.leases.length], each.isProgress)
      case 'settle':
        return await this.#settle(this.leases[each.lease % this.leases.length], each.outcome)
      case 'crash while settling':
        return await this.#crash(this.leases[each.lease % this.leases.length], each.outcome)
      case 'settle while reaping':
        return await this.#settleWhileReaping(this.leases[each.lease % this.leases.length], each.outcome)
      case 'claim while reaping':
        return await this.#claimWhileReaping(this.#group(each.to))
      case 'stop':
        return await this.#stop(this.model.runs[each.run % this.model.runs.length]?.id)
      case 'retry':
        return await this.#retry(this.model.runs[each.run % this.model.runs.length]?.id, each.callers)
      case 'reap':
        return await this.#reap(each.reapers)
      case 'wait':
        return await clock.advance(each.seconds * 1_000)
      case 'clock back':
        return await clock.advance(-each.seconds * 1_000)
    }
  }

  /** Completes everything that waits; nothing may be left. */
  async finish(): Promise<void> {
    for (let round = 0; round < 200 && this.model.runs.some(({ status }) => isOpen(status)); round++) {
      await clock.advance(61_000)
      await this.#reap(1)
      for (const group of ['webhook', 'daemon'] as const) await this.#claim(this.#group(group), 5, 1)
      for (const lease of this.leases) await this.#settle(lease, { kind: 'completed' })
    }
    expect(this.model.runs.filter(({ status }) => isOpen(status))).toEqual([])
  }

  /** The database says of every run what the model says. */
  async compare(): Promise<void> {
    const found = await query(
      database.pool,
      `select r.id, r.status, r.attempt, q.available_at as available, l.lease_id as lease, l.expires_at as expires,
         l.stop_requested_at as stop, l.attempt as held, q.attempt as waiting
       from sync_job_run r left join run_queue q on q.run_id = r.id left join run_lease l on l.run_id = r.id order by r.id`,
    )
    const expected = [...this.model.runs]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id, status, attempt, availableMs, lease }) => ({
        id,
        status,
        attempt,
        available: dateOf(availableMs),
        lease: lease?.leaseId ?? null,
        expires: dateOf(lease?.expiresMs),
        stop: dateOf(lease?.stopMs),
        held: lease === null ? null : attempt,
        waiting: availableMs === null ? null : attempt,
      }))
    expect(found).toEqual(expected)
  }

  async #enqueue(account: number, destination: RunDestination): Promise<void> {
    const { environmentId, syncJobId, accountIds } = this.#tenant
    const input = { syncJobId, integratedAccountId: accountIds[account] ?? '', destination }
    const deps = { ...this.#deps, assertMapped: async () => undefined, resolveArgs: async () => ({}) }
    const { id } = await database.transaction((tx) => createRun(deps, tx, environmentId, input))
    this.model.enqueue(id, account, queueGroupOf(environmentId, destination), this.nowMs)
  }

  async #claim(group: string, limit: number, claimants: number): Promise<void> {
    const hadOne = this.model.claimable(group, this.nowMs).length > 0
    const claims = await Promise.all(
      Array.from({ length: claimants }, (_, index) => this.#queue.claim({ group, holder: `holder-${index}`, limit })),
    )
    for (const claim of claims) expect(claim.length).toBeLessThanOrEqual(limit)
    this.#noteTaken(claims.flat(), group)
    if (hadOne) expect(claims.flat().length).toBeGreaterThan(0)
  }

  #noteTaken(taken: readonly Lease<QueuedRun>[], group: string): void {
    for (const lease of taken) this.model.taken(lease, group, this.nowMs)
    this.leases.push(...taken)
  }

  async #heartbeat(): Promise<void> {
    const answers = await this.#queue.heartbeat(this.leases)
    const expected = this.leases.map((lease) => {
      const isStopRequested = this.model.renew(lease, this.nowMs)
      const expiresAt = new Date(this.nowMs + 30_000)
      return isStopRequested === undefined
        ? { kind: 'lost', id: lease.id }
        : { kind: 'held', id: lease.id, expiresAt, isStopRequested }
    })
    expect(answers).toEqual(expected)
  }

  async #save(lease: Lease<QueuedRun> | undefined, isProgress: boolean): Promise<void> {
    if (lease === undefined) return
    const isStopRequested = this.model.renew(lease, this.nowMs)
    if (isProgress) this.model.progress(lease)
    const { pages } = this.model.find(lease.id)
    const saved = await this.#queue.save(lease, {}, [{ ...STATS, pages }]).catch((error) => error.reason)
    expect(saved).toEqual(isStopRequested === undefined ? 'LEASE_LOST' : { isStopRequested })
  }

  async #settle(lease: Lease<QueuedRun> | undefined, ended: Outcome): Promise<void> {
    if (lease === undefined) return
    const expected = this.model.settle(lease, ended, this.nowMs)
    expect(await this.#queue.settle([{ ...lease, outcome: ended }])).toEqual([expected])
  }

  async #crash(lease: Lease<QueuedRun> | undefined, ended: Outcome): Promise<void> {
    if (lease === undefined) return
    const dies = beforeCommit(database, () => Promise.reject(new Error('killed before the commit')))
    const dying = new RunQueue({ database: dies, random: () => 0.5 })
    await dying.settle([{ ...lease, outcome: ended }]).catch(() => undefined)
  }

  async #settleWhileReaping(lease: Lease<QueuedRun> | undefined, ended: Outcome): Promise<void> {
    if (lease === undefined) return
    const [[settled], reaped] = await Promise.all([
      this.#queue.settle([{ ...lease, outcome: ended }]),
      this.#queue.reap(),
    ])
    // One of the two came first, and the other found nothing.
    if (settled?.kind === 'settled') expect(this.model.settle(lease, ended, this.nowMs)).toEqual(settled)
    expect(reaped).toBe(this.model.reap(this.nowMs))
    expect(this.model.find(lease.id).lease?.leaseId).not.toBe(lease.leaseId)
  }

  async #claimWhileReaping(group: string): Promise<void> {
    const [reaped, taken] = await Promise.all([
      this.#queue.reap(),
      this.#queue.claim({ group, holder: 'holder', limit: 5 }),
    ])
    expect(reaped).toBe(this.model.reap(this.nowMs))
    this.#noteTaken(taken, group)
  }

  async #stop(id: string | undefined): Promise<void> {
    if (id === undefined) return
    const { environmentId } = this.#tenant
    const stopped = database.transaction((tx) => stopRun(tx, environmentId, id))
    expect(await reasonOf(stopped)).toBe(this.model.stop(id, this.nowMs) ? 'accepted' : 'RUN_STATE_CONFLICT')
  }

  async #retry(id: string | undefined, callers: number): Promise<void> {
    if (id === undefined) return
    const { environmentId } = this.#tenant
    const call = () => reasonOf(database.transaction((tx) => retryRun(this.#deps, tx, environmentId, id)))
    const reasons = await Promise.all(Array.from({ length: callers }, call))
    const expected = Array.from({ length: callers }, () => 'RUN_STATE_CONFLICT')
    if (this.model.retry(id, this.nowMs)) expected[0] = 'accepted'
    expect(reasons.sort()).toEqual(expected.sort())
  }

  async #reap(reapers: number): Promise<void> {
    const reaped = await Promise.all(Array.from({ length: reapers }, () => this.#queue.reap()))
    expect(reaped.reduce((sum, each) => sum + each)).toBe(this.model.reap(this.nowMs))
  }

  get #deps() {
    return { queue: this.#queue }
  }

  #destination(kind: Destination): RunDestination {
    return kind === 'daemon' ? { kind, groupKey: 'warehouse' } : { kind, webhookId: this.#tenant.webhookId }
  }

  #group(kind: Destination): string {
    return queueGroupOf(this.#tenant.environmentId, this.#destination(kind))
  }
}

function isOpen(status: string): boolean {
  return ['created', 'running', 'rate_limited'].includes(status)
}

function dateOf(ms: number | null | undefined): Date | null {
  return ms === null || ms === undefined ? null : new Date(ms)
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'accepted',
    (error) => error.reason ?? String(error),
  )
}

describe('in any order of events', () => {
  it('the queue is where a model of it is, and everything comes to an end', async () => {
    const tenant = await createTenant(database, ACCOUNTS)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
        await execute(database.pool, `truncate ${TABLES}`)
        await clock.set('2026-11-05T12:00:00Z')
        const at = new Bench(tenant)
        for (const each of steps) {
          await at.perform(each)
          await at.compare()
        }
        await at.finish()
        await at.compare()
      }),
      { numRuns: caseCount(10, 60) },
    )
  })
})
