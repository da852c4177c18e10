import { describe, expect, it } from 'vitest'
import { MicroBatcher } from '../../../../src/foundation/base/index.ts'

describe('a micro-batcher', () => {
  it('batches requests that arrive while a batch is under way, and returns each its result', async () => {
    const batches: number[] = []
    const first = Promise.withResolvers<void>()
    const batcher = new MicroBatcher<string, string>({
      concurrencyMax: 1,
      batchMax: 2,
      async process(batch) {
        batches.push(batch.length)
        if (batches.length === 1) await first.promise
        return batch.map((request) => request.toUpperCase())
      },
    })
    const all = Promise.all(['a', 'b', 'c', 'd'].map((request) => batcher.run(request)))
    first.resolve()
    expect(await all).toEqual(['A', 'B', 'C', 'D'])
    expect(batches).toEqual([1, 2, 1])
  })

  it('runs batches at the same time up to its limit', async () => {
    let [running, runningMax] = [0, 0]
    const batcher = new MicroBatcher<number, number>({
      concurrencyMax: 2,
      batchMax: 1,
      async process(batch) {
        runningMax = Math.max(runningMax, ++running)
        await new Promise(setImmediate)
        running--
        return batch
      },
    })
    await Promise.all([1, 2, 3, 4].map((request) => batcher.run(request)))
    expect(runningMax).toBe(2)
  })

  it('rejects every request of a batch that failed, and continues with the next', async () => {
    let calls = 0
    const batcher = new MicroBatcher<string, string>({
      concurrencyMax: 1,
      batchMax: 10,
      async process(batch) {
        if (++calls === 1) throw new Error('unreachable')
        return batch
      },
    })
    await expect(batcher.run('a')).rejects.toThrow('unreachable')
    expect(await batcher.run('b')).toBe('b')
  })
})
