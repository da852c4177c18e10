import { expect, it } from 'vitest'
import { runInRequest, systemClock } from '../../../../src/foundation/base/index.ts'
import { FairSlots, yieldToEventLoop } from '../../../../src/foundation/fair/index.ts'

const slots = new FairSlots({
  slotsMax: 100,
  waitingPerOwnerMax: 100,
  waitMsMax: 10_000,
  clock: systemClock,
  rejection: 'too many',
})

/** Work in slices, each of which it writes down. */
function sliced(owner: string, count: number, order: string[]): Promise<void> {
  const request = { slot: undefined, onInterrupt: () => () => {}, interruption: undefined, holdAnswer: () => () => {} }
  const work = async () => {
    for (let slice = 0; slice < count; slice++) {
      await yieldToEventLoop()
      order.push(owner)
    }
  }
  return runInRequest(request, () => slots.run(owner, request, work))
}

it('continues the work of owners in turns: a short one waits for one slice of the others, however many they are', async () => {
  const order: string[] = []
  const many = Array.from({ length: 40 }, () => sliced('many', 3, order))
  await Promise.all([...many, sliced('one', 3, order)])
  expect(order.slice(0, 6)).toEqual(['many', 'one', 'many', 'one', 'many', 'one'])
  expect(order).toHaveLength(123)
})

/** How many pieces of work each turn of the event loop continued. */
async function countPerTurn(owners: readonly string[], slice: () => void): Promise<readonly number[]> {
  const perTurn: number[] = []
  let done = 0
  const works = owners.map(async (owner) => {
    for (let count = 0; count < 3; count++) {
      await yieldToEventLoop(owner)
      slice()
      done++
    }
  })
  for (let before = 0; done < owners.length * 3; before = done) {
    await new Promise((resolve) => setImmediate(resolve))
    perTurn.push(done - before)
  }
  await Promise.all(works)
  return perTurn
}

it('continues one piece of work per turn of the event loop when it takes long', async () => {
  const burn = () => {
    for (const end = performance.now() + 2; performance.now() < end; );
  }
  expect(Math.max(...(await countPerTurn(['a', 'b', 'c'], burn)))).toBe(1)
})

it('continues short pieces of work in the same turn', async () => {
  // On a busy machine a turn may end after any of them.
  const turns = await Promise.all(Array.from({ length: 50 }, () => countPerTurn(['a', 'b'], () => {})))
  expect(Math.max(...turns.flat())).toBeGreaterThan(1)
})
