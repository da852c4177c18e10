import { describe, expect, it } from 'vitest'
import { LeasedWork } from '../../../../src/foundation/queue/leased-work.ts'
import { manualClock } from '../../../support/manual-clock.ts'

const OUTAGE = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
const clock = manualClock()
const errors: unknown[] = []

function leasedWork(claim: () => Promise<boolean> = async () => false): LeasedWork {
  const logger = { error: (fields: object) => errors.push(fields) }
  const deps = { clock, random: () => 0, logger, onError: () => undefined }
  return new LeasedWork(deps, { name: 'claims', intervalMs: 1_000, runOnce: claim }, [])
}

describe('settle', () => {
  it('repeats through an outage, after longer and longer pauses', async () => {
    const answers = [OUTAGE, OUTAGE, 'settled']
    const settled = leasedWork().settle(clock.monotonicMs() + 10_000, async () => {
      const answer = answers.shift()
      if (answer === OUTAGE) throw OUTAGE
      return answer
    })
    await clock.pass(50)
    await clock.pass(100)
    expect(await settled).toBe('settled')
  })

  it('ends with the lease', async () => {
    let calls = 0
    const settled = leasedWork().settle(clock.monotonicMs() + 60, async () => {
      calls++
      throw OUTAGE
    })
    await clock.pass(50)
    await clock.pass(100)
    expect(await settled).toBeUndefined()
    expect(calls).toBe(2)
  })

  it('repeats nothing that would fail again', async () => {
    const defect = new Error('violates a constraint')
    await expect(leasedWork().settle(clock.monotonicMs() + 60, () => Promise.reject(defect))).rejects.toBe(defect)
  })
})

describe('finish', () => {
  it('claims nothing more, and waits for what the claim under way has begun', async () => {
    const claimed = Promise.withResolvers<void>()
    const done = Promise.withResolvers<void>()
    const work = leasedWork(async () => {
      await claimed.promise
      work.begin({}, done.promise, () => {})
      return true
    })
    work.start()
    const finished = work.finish(10_000)
    claimed.resolve()
    await expect.poll(() => work.count).toBe(1)
    done.resolve()
    await finished
    expect(work.count).toBe(0)
  })

  it('interrupts at the deadline, and leaves what does not end then', async () => {
    const work = leasedWork()
    const ends = Promise.withResolvers<void>()
    work.begin({}, ends.promise, () => {})
    work.begin({}, new Promise(() => {}), () => {})
    const finished = work.finish(10_000, () => ends.resolve())
    await clock.pass(10_000)
    await clock.pass(5_000)
    await finished
    expect(work.count).toBe(1)
  })
})

it('logs what was not settled, and counts it no longer', async () => {
  const work = leasedWork()
  const ended = Promise.withResolvers<number>()
  work.begin({ run_id: 'r1' }, Promise.reject(new Error('defect')), () => ended.resolve(work.count))
  expect(await ended.promise).toBe(0)
  expect(errors).toMatchObject([{ run_id: 'r1', error: expect.anything() }])
})
