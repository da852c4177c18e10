import { beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Database } from '../../../../src/foundation/database/index.ts'
import type { Claim, Lease, Outcome, Queue, QueuedItem } from '../../../../src/foundation/queue/index.ts'
import type { DatabaseClock } from '../../../support/database-clock.ts'

/** One implementation under test, on an empty queue. */
export interface QueueUnderTest {
  readonly queue: Pick<Queue<unknown>, 'heartbeat' | 'settle' | 'reap'> & {
    claim(request: Claim): Promise<readonly Lease<QueuedItem>[]>
  }
  readonly database: Database
  readonly clock: DatabaseClock
  /** The concurrency key of a number. */
  keyOf(key: number): string
  /** Stores records and puts them into the queue, in one transaction, and returns their ids. */
  enqueue(items: readonly TestItem[], beforeCommit?: () => Promise<void>): Promise<readonly string[]>
  statusOf(id: string): Promise<{ readonly status: string; readonly attempt: number; readonly error: unknown }>
  requestStop(id: string): Promise<void>
}

export interface TestItem {
  readonly key: number
  readonly group?: string
  readonly region?: string
  readonly availableAt?: Date
}

const GROUP = 'webhook'
const HOLDER = 'worker-1'
const LEASE_MS = 30_000
const FAILURE = { reason: 'UPSTREAM_ERROR', message: 'it broke' }

/** The promises of the seam; every implementation keeps all of them. */
export function describeQueue(name: string, open: () => Promise<QueueUnderTest>, isKeyExclusive: boolean): void {
  describe(name, () => {
    let at: QueueUnderTest
    beforeEach(async () => {
      at = await open()
    })

    const claim = (limit: number, more: Partial<Claim> = {}) =>
      at.queue.claim({ group: GROUP, holder: HOLDER, limit, ...more })
    const claimOne = async (): Promise<Lease<QueuedItem>> => {
      const [lease] = await claim(1)
      if (lease === undefined) throw new Error('nothing to claim')
      return lease
    }
    const settle = async (lease: Lease<QueuedItem>, outcome: Outcome) =>
      (await at.queue.settle([{ ...lease, outcome }]))[0]
    const keys = (count: number) => Array.from({ length: count }, (_, key) => ({ key }))

    describe('a claim', () => {
      it('takes a waiting item and marks it running', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const lease = await claimOne()
        expect(lease).toMatchObject({ id, attempt: 1, concurrencyKey: at.keyOf(1) })
        expect(lease.expiresAt.getTime()).toBe(at.clock.now().getTime() + LEASE_MS)
        expect(await at.statusOf(id)).toMatchObject({ status: 'running', attempt: 1 })
      })

      it('takes no item that is leased', async () => {
        await at.enqueue([{ key: 1 }])
        await claimOne()
        expect(await claim(10)).toEqual([])
      })

      it('takes nothing before the transaction that enqueued it commits', async () => {
        let seen: readonly unknown[] | undefined
        await at.enqueue([{ key: 1 }], async () => {
          seen = await claim(10)
        })
        expect(seen).toEqual([])
        expect(await claim(10)).toHaveLength(1)
      })

      it('takes nothing before it is available', async () => {
        await at.enqueue([{ key: 1, availableAt: new Date(at.clock.now().getTime() + 1000) }])
        await at.clock.advance(999)
        expect(await claim(1)).toEqual([])
        await at.clock.advance(1)
        expect(await claim(1)).toHaveLength(1)
      })

      it('takes items of its group alone', async () => {
        const [, mine] = await at.enqueue([{ key: 1 }, { key: 2, group: 'daemon:a' }])
        expect((await claim(10, { group: 'daemon:a' })).map(({ id }) => id)).toEqual([mine])
      })

      it('takes items of its regions alone, and of all without any', async () => {
        const [, european] = await at.enqueue([{ key: 1 }, { key: 2, region: 'eu' }, { key: 3, region: 'apac' }])
        expect((await claim(10, { regions: ['eu'] })).map(({ id }) => id)).toEqual([european])
        expect(await claim(10)).toHaveLength(2)
      })

      it('takes no more than the limit, nor than the group may hold', async () => {
        await at.enqueue(keys(10))
        expect(await claim(3)).toHaveLength(3)
        expect(await claim(10, { heldMax: 5 })).toHaveLength(2)
        expect(await claim(10, { heldMax: 5 })).toHaveLength(0)
      })

      it('shares items between claimants at the same moment without giving one twice', async () => {
        const ids = await at.enqueue(keys(40))
        const claims = await Promise.all(Array.from({ length: 8 }, () => claim(5)))
        const taken = claims.flat().map(({ id }) => id)
        expect(new Set(taken).size).toBe(taken.length)
        const rest = await claim(40)
        expect([...taken, ...rest.map(({ id }) => id)].sort()).toEqual([...ids].sort())
      })

      it.each([
        { kind: 'retry', error: FAILURE },
        { kind: 'rate_limited', afterMs: 1_000 },
      ] as const)(
        'takes an item that was put back ($kind) after everything that waited with its key then',
        async (outcome) => {
          // Ranks of a backlog reach into the future, so that of an item which comes back soon has to reach further.
          const ids = await at.enqueue(Array.from({ length: 20 }, () => ({ key: 1 })))
          for (const _ of ids.slice(0, 15)) await settle(await claimOne(), { kind: 'completed' })
          const late = await claimOne()
          await settle(late, outcome)
          await at.clock.advance(10_000)
          const order: string[] = []
          for (const _ of ids.slice(15)) {
            const lease = await claimOne()
            order.push(lease.id)
            await settle(lease, { kind: 'completed' })
          }
          expect(order.at(-1)).toBe(late.id)
        },
      )

      it('serves a quiet key before the backlog of a busy one', async () => {
        await at.enqueue(Array.from({ length: 50 }, () => ({ key: 1 })))
        const [quiet = ''] = await at.enqueue([{ key: 2 }])
        const first = await claim(2)
        expect(first.map(({ id }) => id)).toContain(quiet)
      })
    })

    if (isKeyExclusive) {
      describe('an exclusive concurrency key', () => {
        it('has one lease at a time', async () => {
          await at.enqueue([{ key: 1 }, { key: 1 }])
          const lease = await claimOne()
          expect(await claim(10)).toEqual([])
          await settle(lease, { kind: 'completed' })
          expect(await claim(10)).toHaveLength(1)
        })

        it('has one lease when many claim at the same moment', async () => {
          await at.enqueue(Array.from({ length: 24 }, (_, index) => ({ key: index % 3 })))
          const claims = await Promise.all(Array.from({ length: 8 }, () => claim(8)))
          const taken = claims.flat().map(({ concurrencyKey }) => concurrencyKey)
          expect(taken.length).toBeGreaterThan(0)
          expect(new Set(taken).size).toBe(taken.length)
        })
      })
    } else {
      it('leases several items of one key at once', async () => {
        await at.enqueue([{ key: 1 }, { key: 1 }])
        expect(await claim(10)).toHaveLength(2)
      })
    }

    describe('a heartbeat', () => {
      it('renews every lease it names, in one call', async () => {
        await at.enqueue(keys(3))
        const leases = await claim(3)
        await at.clock.advance(20_000)
        const answers = await at.queue.heartbeat(leases)
        const expiresAt = new Date(at.clock.now().getTime() + LEASE_MS)
        expect(answers).toEqual(leases.map(({ id }) => ({ kind: 'held', id, expiresAt, isStopRequested: false })))
      })

      it('keeps a lease from being taken back', async () => {
        await at.enqueue([{ key: 1 }])
        const lease = await claimOne()
        await at.clock.advance(20_000)
        await at.queue.heartbeat([lease])
        await at.clock.advance(20_000)
        expect(await at.queue.reap()).toBe(0)
      })

      it('tells a holder that its lease is another holder’s', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        await claimOne()
        expect(await at.queue.heartbeat([{ id, leaseId: newId() }])).toEqual([{ kind: 'lost', id }])
      })
    })

    describe('an expired lease', () => {
      it('is taken back, and the next holder’s attempt is counted', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const stale = await claimOne()
        await at.clock.advance(LEASE_MS)
        expect(await at.queue.reap()).toBe(1)
        expect(await at.statusOf(id)).toMatchObject({ status: 'created', error: { reason: 'lease_expired' } })
        expect(await claimOne()).toMatchObject({ id, attempt: 2 })
        expect(await at.queue.heartbeat([stale])).toEqual([{ kind: 'lost', id }])
      })

      it('lets its holder settle nothing', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const stale = await claimOne()
        await at.clock.advance(LEASE_MS)
        await at.queue.reap()
        const fresh = await claimOne()
        expect(await settle(stale, { kind: 'completed' })).toEqual({ kind: 'lost', id })
        expect(await at.statusOf(id)).toMatchObject({ status: 'running' })
        expect(await settle(fresh, { kind: 'completed' })).toEqual({ kind: 'settled', id, status: 'completed' })
      })

      it('is distinguished from the one that followed it, when both are asked about together', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const stale = await claimOne()
        await at.clock.advance(LEASE_MS)
        await at.queue.reap()
        const fresh = await claimOne()
        expect(await at.queue.heartbeat([stale, fresh])).toMatchObject([
          { kind: 'lost', id },
          { kind: 'held', id },
        ])
        const outcomes = [stale, fresh].map((lease) => ({ ...lease, outcome: { kind: 'completed' } as const }))
        expect(await at.queue.settle(outcomes)).toMatchObject([
          { kind: 'lost', id },
          { kind: 'settled', id },
        ])
      })

      it('after the last attempt leaves the item to one more, and fails it when that one is lost too', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        for (let attempt = 1; attempt <= 6; attempt++) {
          expect(await claimOne()).toMatchObject({ attempt })
          await at.clock.advance(LEASE_MS)
          await at.queue.reap()
        }
        expect(await at.statusOf(id)).toMatchObject({ status: 'failed', error: { reason: 'lease_expired' } })
        expect(await claim(1)).toEqual([])
      })

      it('is taken back once when two reapers look at the same moment', async () => {
        await at.enqueue(keys(20))
        await claim(20)
        await at.clock.advance(LEASE_MS)
        const taken = await Promise.all([at.queue.reap(), at.queue.reap(), at.queue.reap()])
        expect(taken.reduce((sum, each) => sum + each)).toBe(20)
      })
    })

    describe('an outcome', () => {
      it.each(['completed', 'stopped'] as const)('%s ends the item', async (kind) => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        expect(await settle(await claimOne(), { kind })).toEqual({ kind: 'settled', id, status: kind })
        expect(await at.statusOf(id)).toMatchObject({ status: kind, error: null })
        expect(await claim(1)).toEqual([])
      })

      it('failed ends the item with its reason', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        await settle(await claimOne(), { kind: 'failed', error: FAILURE })
        expect(await at.statusOf(id)).toMatchObject({ status: 'failed', error: FAILURE })
      })

      it('of a settled lease cannot be given again', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const lease = await claimOne()
        await settle(lease, { kind: 'completed' })
        expect(await settle(lease, { kind: 'failed', error: FAILURE })).toEqual({ kind: 'lost', id })
        expect(await at.statusOf(id)).toMatchObject({ status: 'completed' })
      })

      it('can be given for many leases at once', async () => {
        await at.enqueue(keys(3))
        const leases = await claim(3)
        const outcomes: Outcome[] = [{ kind: 'completed' }, { kind: 'failed', error: FAILURE }, { kind: 'released' }]
        const settled = await at.queue.settle(
          leases.map((lease, place) => ({ ...lease, outcome: outcomes[place] ?? { kind: 'completed' } })),
        )
        expect(settled.map((each) => each.kind === 'settled' && each.status)).toEqual([
          'completed',
          'failed',
          'created',
        ])
      })

      it('retry brings the item back after a growing delay, five attempts in all', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        for (const delayMs of [5_000, 10_000, 20_000, 40_000]) {
          await settle(await claimOne(), { kind: 'retry', error: FAILURE })
          expect(await at.statusOf(id)).toMatchObject({ status: 'created', error: FAILURE })
          await at.clock.advance(delayMs / 2 - 1) // the jitter leaves at least half
          expect(await claim(1)).toEqual([])
          await at.clock.advance(delayMs / 2 + 1)
        }
        expect(await settle(await claimOne(), { kind: 'retry', error: FAILURE })).toMatchObject({ status: 'failed' })
        await at.clock.advance(3_600_000)
        expect(await claim(1)).toEqual([])
      })

      it('retry waits at least as long as it asks', async () => {
        await at.enqueue([{ key: 1 }])
        await settle(await claimOne(), { kind: 'retry', error: FAILURE, afterMs: 60_000 })
        await at.clock.advance(59_999)
        expect(await claim(1)).toEqual([])
        await at.clock.advance(1)
        expect(await claim(1)).toHaveLength(1)
      })

      it('rate_limited waits without counting the attempt', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        for (let wait = 1; wait <= 10; wait++) {
          const lease = await claimOne()
          expect(lease.attempt).toBe(1)
          await settle(lease, { kind: 'rate_limited', afterMs: 1_000 })
          expect(await at.statusOf(id)).toMatchObject({ status: 'rate_limited' })
          expect(await claim(1)).toEqual([])
          await at.clock.advance(1_000)
        }
        expect(await claim(1)).toHaveLength(1)
      })

      it('released makes the item available at once without counting the attempt', async () => {
        await at.enqueue([{ key: 1 }])
        await settle(await claimOne(), { kind: 'released' })
        expect(await claimOne()).toMatchObject({ attempt: 1 })
      })
    })

    describe('a request to stop', () => {
      it('reaches the holder with the next heartbeat', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const lease = await claimOne()
        await at.requestStop(id)
        expect(await at.queue.heartbeat([lease])).toMatchObject([{ kind: 'held', isStopRequested: true }])
      })

      it('takes the lease from a holder that continues for a minute', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const lease = await claimOne()
        await at.requestStop(id)
        for (let beat = 0; beat < 5; beat++) {
          await at.clock.advance(10_000)
          await at.queue.heartbeat([lease])
          expect(await at.queue.reap()).toBe(0)
        }
        await at.clock.advance(10_000)
        expect(await at.queue.reap()).toBe(1)
        expect(await at.queue.heartbeat([lease])).toEqual([{ kind: 'lost', id }])
        expect(await at.statusOf(id)).toMatchObject({ status: 'stopped' })
      })

      it.each([
        { kind: 'retry', error: FAILURE },
        { kind: 'rate_limited', afterMs: 1000 },
        { kind: 'released' },
      ] as const)('wins over an outcome that would wait ($kind)', async (outcome) => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        const lease = await claimOne()
        await at.requestStop(id)
        expect(await settle(lease, outcome)).toEqual({ kind: 'settled', id, status: 'stopped' })
        await at.clock.advance(3_600_000)
        expect(await claim(1)).toEqual([])
      })

      it('stops an item whose holder is gone', async () => {
        const [id = ''] = await at.enqueue([{ key: 1 }])
        await claimOne()
        await at.requestStop(id)
        await at.clock.advance(LEASE_MS)
        await at.queue.reap()
        expect(await at.statusOf(id)).toMatchObject({ status: 'stopped' })
      })
    })
  })
}
