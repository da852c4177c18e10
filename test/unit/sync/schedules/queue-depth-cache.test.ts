import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { QUEUE_DEPTH_MAX } from '../../../../src/sync/runs/run.ts'
import { queueGroupKey } from '../../../../src/sync/runs/run-queue.ts'
import { QueueDepthCache } from '../../../../src/sync/schedules/queue-depth-cache.ts'
import { testDatabase } from '../../../support/database.ts'

const { database } = await testDatabase()
const GROUP = { environmentId: 'e', group: 'webhook' }

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

/** A cache over a queue in which so many runs wait, and the number of counts. */
function cacheOver(waiting: number) {
  const counts: number[] = []
  const cache = new QueueDepthCache({
    countWaiting: async () => {
      counts.push(waiting)
      return new Map([[queueGroupKey(GROUP.environmentId, GROUP.group), waiting]])
    },
  })
  const loadAfter = async (ms: number) => {
    vi.advanceTimersByTime(ms)
    await cache.load(database.pool, [GROUP])
    return counts.length
  }
  return { cache, loadAfter }
}

describe('the queue depth of a group', () => {
  it('is counted again after five seconds while it is less than half full', async () => {
    const { loadAfter } = cacheOver(QUEUE_DEPTH_MAX / 2 - 1)
    expect([await loadAfter(0), await loadAfter(4_999), await loadAfter(1)]).toEqual([1, 1, 2])
  })

  it('is counted again after a second when it is at least half full', async () => {
    const { loadAfter } = cacheOver(QUEUE_DEPTH_MAX / 2)
    expect([await loadAfter(0), await loadAfter(999), await loadAfter(1)]).toEqual([1, 1, 2])
  })

  it('includes added runs immediately', async () => {
    const { cache, loadAfter } = cacheOver(QUEUE_DEPTH_MAX - 1)
    await loadAfter(0)
    expect(cache.isFull(GROUP.environmentId, GROUP.group)).toBe(false)
    cache.add(GROUP.environmentId, GROUP.group)
    expect(cache.isFull(GROUP.environmentId, GROUP.group)).toBe(true)
  })
})
