import { systemClock, TtlCache } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import { QUEUE_DEPTH_MAX } from '../runs/run.ts'
import { queueGroupKey, type RunQueue } from '../runs/run-queue.ts'

/** Cache TTL of a count; runs that this ticker adds are counted immediately. */
const CACHE_TTL_MS = 1_000
/** Cache TTL of groups less than half full; counting many small groups is the expensive part. */
const HALF_EMPTY_TTL_MS = 5_000
const HALF_FULL = QUEUE_DEPTH_MAX / 2
const GROUPS_CACHED_MAX = 10_000

/**
 * Caches how many runs wait per group: counting them for every batch would cost more than the ticks. Several tickers together
 * may therefore exceed QUEUE_DEPTH_MAX by what the others add within the TTL.
 */
export class QueueDepthCache {
  readonly #queue: Pick<RunQueue, 'countWaiting'>
  readonly #depths = new TtlCache<{ waiting: number }>({
    max: GROUPS_CACHED_MAX,
    ttlMs: CACHE_TTL_MS,
    clock: systemClock,
  })

  constructor(queue: Pick<RunQueue, 'countWaiting'>) {
    this.#queue = queue
  }

  /** Counts the groups whose depth is not cached. Call before `isFull` and `add` of these groups. */
  async load(tx: Db, groups: readonly { readonly environmentId: string; readonly group: string }[]): Promise<void> {
    const missing = new Map<string, (typeof groups)[number]>()
    for (const each of groups) {
      const key = queueGroupKey(each.environmentId, each.group)
      if (this.#depths.get(key) === undefined) missing.set(key, each)
    }
    if (missing.size === 0) return
    const counted = await this.#queue.countWaiting(tx, [...missing.values()])
    for (const key of missing.keys()) {
      const waiting = counted.get(key) ?? 0
      this.#depths.set(key, { waiting }, waiting < HALF_FULL ? HALF_EMPTY_TTL_MS : CACHE_TTL_MS)
    }
  }

  isFull(environmentId: string, group: string): boolean {
    return (this.#depths.getStale(queueGroupKey(environmentId, group))?.waiting ?? 0) >= QUEUE_DEPTH_MAX
  }

  /** Counts a run that is about to be queued. */
  add(environmentId: string, group: string): void {
    const key = queueGroupKey(environmentId, group)
    const depth = this.#depths.getStale(key)
    if (depth === undefined) return
    depth.waiting++
    // From here on what other tickers add matters: the shorter TTL begins.
    if (depth.waiting === HALF_FULL) this.#depths.set(key, depth)
  }
}
