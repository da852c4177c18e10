import type { Tx } from '../database/index.ts'
import { QUEUE_DEPTH_MAX, queueGroupKey, type RunQueue } from '../runs/index.ts'

/** A count is believed this long; the ticker's own additions are known at once. */
const CACHE_TTL_MS = 1_000
/** Of a group that is not even half full: it is the many rows of many such groups that are dear to count. */
const HALF_EMPTY_TTL_MS = 5_000
const GROUPS_CACHED_MAX = 10_000

interface CachedDepth {
  waiting: number
  readonly countedMs: number
}

/**
 * How full the groups are, remembered for seconds: counting waiting runs at every batch would cost more than the ticks.
 * Several tickers together may therefore pass GROUP_QUEUED_MAX by what the others add within that time.
 */
export class QueueDepthCache {
  readonly #queue: Pick<RunQueue, 'countWaiting'>
  readonly #counts = new Map<string, CachedDepth>()

  constructor(queue: Pick<RunQueue, 'countWaiting'>) {
    this.#queue = queue
  }

  /** Counts the groups that are not known well enough. Call before `isFull` and `add` of these groups. */
  async load(tx: Tx, groups: readonly { readonly environmentId: string; readonly group: string }[]): Promise<void> {
    const nowMs = performance.now()
    if (this.#counts.size > GROUPS_CACHED_MAX) this.#counts.clear()
    const unknown = new Map<string, (typeof groups)[number]>()
    for (const each of groups) {
      const id = queueGroupKey(each.environmentId, each.group)
      const count = this.#counts.get(id)
      if (count === undefined || nowMs - count.countedMs > ttlMs(count)) unknown.set(id, each)
    }
    if (unknown.size === 0) return
    const counted = await this.#queue.countWaiting(tx, [...unknown.values()])
    for (const id of unknown.keys()) this.#counts.set(id, { waiting: counted.get(id) ?? 0, countedMs: nowMs })
  }

  isFull(environmentId: string, group: string): boolean {
    return (this.#counts.get(queueGroupKey(environmentId, group))?.waiting ?? 0) >= QUEUE_DEPTH_MAX
  }

  /** Notes a run that is about to wait. */
  add(environmentId: string, group: string): void {
    const count = this.#counts.get(queueGroupKey(environmentId, group))
    if (count !== undefined) count.waiting++
  }
}

function ttlMs({ waiting }: CachedDepth): number {
  return waiting < QUEUE_DEPTH_MAX / 2 ? HALF_EMPTY_TTL_MS : CACHE_TTL_MS
}
