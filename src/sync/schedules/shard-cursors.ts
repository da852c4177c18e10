import type { DueCursor } from './sql/due-trigger.ts'

/** Number of shards of the due index; a trigger's shard is a hash of its id. */
export const SHARDS = 64

/** Interval of full scans, which find rows that were locked, rolled back, or moved into the past. */
const RESCAN_MS = 5_000
/** Ticks of the latest seconds are read again by every pass, so that a row which was locked waits for one pass only. */
const RECENT_MS = 2_000
const INITIAL_CURSOR: DueCursor = { at: new Date(0), triggerId: '00000000-0000-0000-0000-000000000000' }

/** The shard of a trigger. Ids end in random digits. */
export function shardOf(triggerId: string): number {
  return Number.parseInt(triggerId.slice(-2), 16) % SHARDS
}

/**
 * Read cursors into the due index, one per shard: a pass skips the entries of ticks that have fired, which stay at the head
 * of the index while a long query holds vacuum back.
 *
 * Only an optimisation: all cursors are reset every RESCAN_MS.
 */
export class ShardCursors {
  readonly #cursors = new Map<number, DueCursor>()
  readonly #firstShard: number
  #rescannedMs: number | undefined

  /** @param firstShard where passes begin, so that workers do not all begin with the same shard */
  constructor(firstShard: number) {
    this.#firstShard = firstShard % SHARDS
    this.#reset()
  }

  /** Begins a pass: the cursor of every shard, in the order in which to visit them. */
  startPass(monotonicMs: number): ReadonlyMap<number, DueCursor> {
    if (this.#rescannedMs === undefined || monotonicMs - this.#rescannedMs >= RESCAN_MS) {
      this.#reset()
      this.#rescannedMs = monotonicMs
    }
    return this.#cursors
  }

  cursor(shard: number): DueCursor {
    return this.#cursors.get(shard) ?? INITIAL_CURSOR
  }

  /** Everything up to the cursor was fired or passed over. */
  advance(shard: number, cursor: DueCursor): void {
    this.#cursors.set(shard, cursor)
  }

  /** Ends a shard's part of a pass; the next pass reads the latest seconds again. */
  finishShard(shard: number, now: Date): void {
    const recent = new Date(now.getTime() - RECENT_MS)
    if (this.cursor(shard).at >= recent) this.#cursors.set(shard, { at: recent, triggerId: INITIAL_CURSOR.triggerId })
  }

  #reset(): void {
    for (let index = 0; index < SHARDS; index++) this.#cursors.set((this.#firstShard + index) % SHARDS, INITIAL_CURSOR)
  }
}
