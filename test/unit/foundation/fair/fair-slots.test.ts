import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  detachFromRequest,
  type RequestSlot,
  releaseSlotWhile,
  runInRequest,
} from '../../../../src/foundation/base/index.ts'
import { workOwner } from '../../../../src/foundation/base/request-scope.ts'
import { FairSlots } from '../../../../src/foundation/fair/index.ts'
import { manualClock } from '../../../support/manual-clock.ts'

const clock = manualClock()

function slotsOf(slotsMax: number, limits: { readonly waitingPerOwnerMax?: number } = {}): FairSlots {
  return new FairSlots({
    slotsMax,
    waitingPerOwnerMax: 1_000,
    waitMsMax: 10_000,
    clock,
    rejection: 'too many',
    ...limits,
  })
}

/** Runs work as that of a request. */
function run<Result>(
  slots: FairSlots,
  owner: string,
  work: () => Promise<Result>,
  { onInterrupt }: Pick<Parameters<FairSlots['run']>[1], 'onInterrupt'> = interruptible(),
): Promise<Result> {
  const slot: RequestSlot | undefined = undefined
  const request = { slot, onInterrupt, interruption: undefined, holdAnswer: () => () => {} }
  return runInRequest(request, () => slots.run(owner, request, work))
}

/** A request that can be interrupted. */
function interruptible() {
  const listeners = new Set<() => void>()
  let isInterrupted = false
  return {
    onInterrupt(listener: () => void) {
      if (isInterrupted) listener()
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    interrupt() {
      isInterrupted = true
      for (const listener of listeners) listener()
    },
    listeners,
  }
}

/** Work that has begun and ends when it is told to. */
function held(slots: FairSlots, owner: string) {
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const work = { hasBegun: false, isOver: false, end, done: Promise.resolve() }
  work.done = run(slots, owner, async () => {
    work.hasBegun = true
    await promise
  })
  return work
}

const settled = () => new Promise((resolve) => setImmediate(resolve))
const begun = (works: readonly { readonly hasBegun: boolean }[]) => works.filter(({ hasBegun }) => hasBegun).length

describe('slots', () => {
  it('give one owner half of them, and a newcomer one at once, however much waits', async () => {
    const slots = slotsOf(12)
    const ofA = Array.from({ length: 480 }, () => held(slots, 'a'))
    const ofB = Array.from({ length: 10 }, () => held(slots, 'b'))
    expect([begun(ofA), begun(ofB), slots.waiting]).toEqual([6, 3, 481])
    for (const work of [...ofA, ...ofB]) work.end()
    await Promise.all([...ofA, ...ofB].map(({ done }) => done))
    expect(slots.waiting).toBe(0)
  })

  it('are given in turns of owners, each owner in order', async () => {
    const slots = slotsOf(1)
    const order: string[] = []
    const names = [...Array.from({ length: 20 }, (_, index) => `a${index}`), 'b0', 'b1', 'c0']
    await Promise.all(names.map((name) => run(slots, name.charAt(0), async () => void order.push(name))))
    expect(order.slice(0, 7)).toEqual(['a0', 'a1', 'b0', 'c0', 'a2', 'b1', 'a3'])
    expect(order.filter((name) => name.startsWith('a'))).toEqual(names.slice(0, 20))
  })

  it('begin waiting work one per turn of the event loop, so that work without a pause lets others in', async () => {
    const slots = slotsOf(1)
    let ran = 0
    const works = Array.from({ length: 10 }, () => run(slots, 'a', async () => (ran += 1)))
    const perTurn: number[] = []
    for (let before = ran; ran < works.length; before = ran) {
      await settled()
      perTurn.push(ran - before)
    }
    await Promise.all(works)
    expect(Math.max(...perTurn)).toBe(1)
  })

  it('are free again after work that fails', async () => {
    const slots = slotsOf(1)
    await expect(run(slots, 'a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
    expect(await run(slots, 'a', async () => 'next')).toBe('next')
  })

  it('hold the work inside of other work too', async () => {
    const slots = slotsOf(1)
    const request = { slot: undefined, onInterrupt: () => () => {} }
    expect(await slots.run('a', request, () => slots.run('a', request, async () => 'inner'))).toBe('inner')
  })

  it('reject an owner of whom too much waits, and no other', async () => {
    const slots = slotsOf(2, { waitingPerOwnerMax: 3 })
    const ofA = Array.from({ length: 4 }, () => held(slots, 'a'))
    await expect(run(slots, 'a', async () => 'never')).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    expect(await run(slots, 'b', async () => 'b')).toBe('b')
    for (const work of ofA) work.end()
    await Promise.all(ofA.map(({ done }) => done))
  })

  it('reject work that waited longer than it may, instead of beginning it', async () => {
    const slots = slotsOf(1)
    const first = held(slots, 'a')
    const late = run(slots, 'a', async () => 'never').catch((failure) => failure)
    clock.move(10_001)
    const next = run(slots, 'a', async () => 'next')
    first.end()
    expect(await late).toMatchObject({ reason: 'RATE_LIMITED', retryAfterSeconds: 2 })
    expect(await next).toBe('next')
  })

  it('forget work whose request ends while it waits', async () => {
    const slots = slotsOf(1)
    const first = held(slots, 'a')
    const request = interruptible()
    let hasRun = false
    const ended = run(slots, 'a', async () => (hasRun = true), request).catch((failure) => failure)
    request.interrupt()
    expect(await ended).toMatchObject({ reason: 'CANCELLED' })
    await expect(run(slots, 'a', async () => 'never', request)).rejects.toMatchObject({ reason: 'CANCELLED' })
    expect(request.listeners.size).toBe(0)
    first.end()
    await first.done
    expect([hasRun, slots.waiting, await run(slots, 'a', async () => 'free')]).toEqual([false, 0, 'free'])
  })

  it('belong to others while work waits for something outside, which has its slot again at once', async () => {
    const slots = slotsOf(2)
    const answer = Promise.withResolvers<string>()
    const calling = run(slots, 'a', () => releaseSlotWhile(() => answer.promise))
    const other = held(slots, 'a')
    expect(other.hasBegun).toBe(true)
    answer.resolve('answer')
    expect(await calling).toBe('answer')
    other.end()
    await other.done
  })

  it('are counted for work that came back, so that its owner begins nothing new and others do', async () => {
    const slots = slotsOf(4)
    const [answer, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const calls = Array.from({ length: 20 }, () =>
      run(slots, 'a', async () => {
        await releaseSlotWhile(() => answer.promise)
        await rest.promise
      }),
    )
    answer.resolve()
    for (let turn = 0; turn < calls.length; turn++) await settled()
    const [ofA, ofB] = [held(slots, 'a'), held(slots, 'b')]
    expect([ofA.hasBegun, ofB.hasBegun]).toEqual([false, true])
    rest.resolve()
    await Promise.all(calls)
    await settled()
    await expect.poll(() => ofA.hasBegun).toBe(true)
    for (const work of [ofA, ofB]) work.end()
  })

  it('are left once by several waits at a time, and not taken again after the work', async () => {
    const slots = slotsOf(2)
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await run(slots, 'a', async () => {
      void releaseSlotWhile(() => one.promise)
      void releaseSlotWhile(() => two.promise)
      one.resolve()
      await settled()
      const other = held(slots, 'a')
      expect(other.hasBegun).toBe(true)
      other.end()
      await other.done
    })
    two.resolve()
    await settled()
    const works = [held(slots, 'a'), held(slots, 'a')]
    expect(begun(works)).toBe(1)
    for (const work of works) work.end()
  })

  it('are kept for what is left of requests, which hold back their owner alone', async () => {
    const slots = slotsOf(4)
    const releases = Array.from({ length: 30 }, () => slots.keep('a'))
    const [ofA, ofB] = [held(slots, 'a'), held(slots, 'b')]
    expect([ofA.hasBegun, ofB.hasBegun]).toEqual([false, true])
    for (const release of releases) release()
    await settled()
    await expect.poll(() => ofA.hasBegun).toBe(true)
    for (const work of [ofA, ofB]) work.end()
  })

  it('name the owner of the work, and none for what the service does for all', async () => {
    const slots = slotsOf(2)
    const owners = await run(slots, 'a', async () => [workOwner(), detachFromRequest(workOwner), workOwner()])
    expect([...owners, workOwner()]).toEqual(['a', 'service', 'a', 'service'])
  })

  it('are never more than there are, have one for a newcomer, and are all free in the end', async () => {
    const step = fc.record({ owner: fc.constantFrom('a', 'b', 'c'), ends: fc.nat(20) })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 9 }), fc.array(step, { maxLength: 60 }), async (max, steps) => {
        const slots = slotsOf(max)
        const works = []
        for (const { owner, ends } of steps) {
          works.push(held(slots, owner))
          const open = works.filter(({ hasBegun, isOver }) => hasBegun && !isOver)
          expect(open.length).toBeLessThanOrEqual(max)
          const ended = open[ends]
          if (ended === undefined) continue
          ended.isOver = true
          ended.end()
          await ended.done
        }
        for (const work of works) work.end()
        await Promise.all(works.map(({ done }) => done))
        expect(slots.waiting).toBe(0)
        const again = Array.from({ length: max }, () => held(slots, 'a'))
        expect(begun(again)).toBe(Math.ceil(max / 2))
        for (const work of again) work.end()
        await Promise.all(again.map(({ done }) => done))
      }),
      { numRuns: 30 },
    )
  })
})
