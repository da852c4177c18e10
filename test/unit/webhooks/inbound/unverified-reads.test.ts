import { describe, expect, it } from 'vitest'
import { UnverifiedReads } from '../../../../src/webhooks/inbound/unverified-reads.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const MIB = 1024 * 1024
const BUSY = expect.objectContaining({ reason: 'RATE_LIMITED' })

function newReads() {
  const clock = new ManualClock(new Date(0))
  return { clock, reads: new UnverifiedReads(clock) }
}

/** Starts small reads until one is rejected. @returns how many were started */
function flood(reads: UnverifiedReads, installation: string, addressOf: (count: number) => string): Disposable[] {
  const started: Disposable[] = []
  try {
    for (;;) started.push(reads.startSmall({ installation, remoteAddress: addressOf(started.length) }, MIB))
  } catch (error) {
    expect(error).toEqual(BUSY)
  }
  return started
}

describe('small bodies', () => {
  it('of one address take 8 MiB, and leave others of the installation theirs', () => {
    const { reads } = newReads()
    expect(flood(reads, 'one', () => '1.1.1.1')).toHaveLength(8)
    expect(flood(reads, 'one', () => '2.2.2.2')).toHaveLength(8)
  })

  it('of an installation that is flooded from many addresses take its share alone', () => {
    const { reads } = newReads()
    const started = flood(reads, 'one', (count) => `1.1.1.${count}`)
    expect(started).toHaveLength(16)
    expect(flood(reads, 'other', () => '9.9.9.9')).toHaveLength(8)
    for (const read of started) read[Symbol.dispose]()
    expect(flood(reads, 'one', () => '1.1.1.1')).toHaveLength(8)
  })
})

describe('large bodies', () => {
  it('are read two at once, and one of an installation; others take turns', async () => {
    const { reads } = newReads()
    const first = await reads.waitForTurn({ installation: 'one', remoteAddress: '1.1.1.1' })
    let isAgain = false
    const again = reads.waitForTurn({ installation: 'one', remoteAddress: '1.1.1.1' }).finally(() => {
      isAgain = true
    })
    const other = await reads.waitForTurn({ installation: 'other', remoteAddress: '1.1.1.1' })
    const third = reads.waitForTurn({ installation: 'third', remoteAddress: '1.1.1.1' })
    other[Symbol.dispose]()
    using _third = await third
    expect(isAgain).toBe(false)
    first[Symbol.dispose]()
    using _again = await again
    expect(isAgain).toBe(true)
  })

  it('of one address of an installation wait four at a time, for 5 seconds', async () => {
    const { reads, clock } = newReads()
    using _first = await reads.waitForTurn({ installation: 'one', remoteAddress: '1.1.1.1' })
    const waiting = Array.from({ length: 4 }, () =>
      reads.waitForTurn({ installation: 'one', remoteAddress: '1.1.1.1' }),
    )
    const outcomes = Promise.allSettled(waiting)
    await expect(reads.waitForTurn({ installation: 'one', remoteAddress: '1.1.1.1' })).rejects.toEqual(BUSY)
    clock.move(5_000)
    expect((await outcomes).map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  })
})
