import { describe, expect, it } from 'vitest'
import { PollLoop, systemClock } from '../../../../src/foundation/base/index.ts'

const loopDeps = { clock: systemClock, random: () => 0, onError: () => undefined }

describe('a poll loop', () => {
  it('does the next round after one that throws', async () => {
    let rounds = 0
    const third = Promise.withResolvers<void>()
    await using loop = new PollLoop(loopDeps, {
      name: 'test',
      intervalMs: 1,
      runOnce: async () => {
        if (++rounds === 3) third.resolve()
        throw new Error('a round failed')
      },
    })
    loop.start()
    await third.promise
    expect(rounds).toBeGreaterThanOrEqual(3)
  })

  it('does the next round at once when there is more, or when it is woken', async () => {
    let rounds = 0
    const reached = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await using loop = new PollLoop(loopDeps, {
      name: 'test',
      intervalMs: 3_600_000,
      runOnce: async () => {
        rounds++
        if (rounds === 2) reached[0]?.resolve()
        if (rounds === 3) reached[1]?.resolve()
        return rounds < 2
      },
    })
    loop.start()
    await reached[0]?.promise
    expect(rounds).toBe(2)
    loop.wake()
    await reached[1]?.promise
    expect(rounds).toBe(3)
  })

  it('ends after the round in flight', async () => {
    const [began, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let isDone = false
    const loop = new PollLoop(loopDeps, {
      name: 'test',
      intervalMs: 1,
      runOnce: async () => {
        began.resolve()
        await end.promise
        isDone = true
        return true
      },
    })
    loop.start()
    await began.promise
    const ended = loop[Symbol.asyncDispose]()
    end.resolve()
    await ended
    expect(isDone).toBe(true)
  })

  it('pauses for as long as the round or the error handler says', async () => {
    const pauses: number[] = []
    const results = [5_000, new Error('a round failed'), true]
    const done = Promise.withResolvers<void>()
    const clock = { sleep: async (ms: number) => void pauses.push(ms) }
    await using loop = new PollLoop(
      { ...loopDeps, clock, onError: () => 7_000 },
      {
        name: 'test',
        intervalMs: 1,
        async runOnce() {
          const result = results.shift()
          if (result instanceof Error) throw result
          if (result === undefined) done.resolve()
          return result ?? 3_600_000
        },
      },
    )
    loop.start()
    await done.promise
    expect(pauses.slice(0, 2)).toEqual([5_000, 7_000])
  })

  it('ends with what its error handler throws', async () => {
    const fatal = new Error('the token is wrong')
    const onError = () => {
      throw fatal
    }
    const loop = new PollLoop(
      { ...loopDeps, onError },
      { name: 'test', intervalMs: 1, runOnce: () => Promise.reject(fatal) },
    )
    loop.start()
    await expect(loop.ended).rejects.toBe(fatal)
  })
})
