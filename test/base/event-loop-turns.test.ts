import { expect, it } from 'vitest'
import { FairSlots, runInRequest, systemClock, yieldToEventLoop } from '../../src/base/index.ts'

const slots = new FairSlots({ slotsMax: 100, waitingPerOwnerMax: 100, waitMsMax: 10_000, clock: systemClock })
const { signal } = new AbortController()

/** Work in slices, each of which it writes down. */
function sliced(owner: string, count: number, order: string[]): Promise<void> {
  const request = { slot: undefined, signal, interruption: undefined, holdAnswer: () => () => {} }
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

it('continues one piece of work per turn of the event loop', async () => {
  const order: string[] = []
  const works = [sliced('a', 3, order), sliced('b', 3, order)]
  const perTurn: number[] = []
  for (let before = 0; order.length < 6; before = order.length) {
    await new Promise((resolve) => setImmediate(resolve))
    perTurn.push(order.length - before)
  }
  await Promise.all(works)
  expect(Math.max(...perTurn)).toBe(1)
})
