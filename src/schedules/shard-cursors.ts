import type { DueCursor } from './sql/due-trigger.ts'

/** The schedules are divided into so many shards by a hash of their trigger's id. */
export const SHARDS = 64

/** Everything is looked at again this often: rows that were locked, rolled back, or moved into the past. */
const RESCAN_MS = 5_000
/** The latest seconds are looked at at every pass, so that a row somebody else had locked waits for one pass alone. */
const RECENT_MS = 2_000
const INITIAL_CURSOR: DueCursor = { at: new Date(0), triggerId: '00000000-0000-0000-0000-000000000000' }

/** The shard of a trigger. Ids end in random digits. */
export function shardOf(triggerId: string): number {
  return Number.parseInt(triggerId.slice(-2), 16) % SHARDS
}

/**
 * How far the due index has been read, per shard, so that a pass does not wade through the entries of ticks that already
 * fired: while a long query holds vacuum back they stay at the head of the index.
 *
 * A memory, not a truth: forgetting it costs time, and it forgets everything every RESCAN_MS.
 */
export class ShardCursors {
  readonly #positions = new Map<number, DueCursor>()
  readonly #firstShard: number
  #rescannedMs: number | undefined

  /** @param firstShard where passes begin, so that workers do not all start at the same place */
  constructor(firstShard: number) {
    this.#firstShard = firstShard % SHARDS
    this.#forget()
  }

  /** Begins a pass: the position of every shard, in the order to visit them. */
  startPass(monotonicMs: number): ReadonlyMap<number, DueCursor> {
    if (this.#rescannedMs === undefined || monotonicMs - this.#rescannedMs >= RESCAN_MS) {
      this.#forget()
      this.#rescannedMs = monotonicMs
    }
    return this.#positions
  }

  cursor(shard: number): DueCursor {
    return this.#positions.get(shard) ?? INITIAL_CURSOR
  }

  /** Notes that everything up to the position was taken or passed over. */
  advance(shard: number, position: DueCursor): void {
    this.#positions.set(shard, position)
  }

  /** Ends a shard's part of a pass: what was passed over lately is looked at again in the next. */
  finishShard(shard: number, now: Date): void {
    const recent = new Date(now.getTime() - RECENT_MS)
    if (this.cursor(shard).at >= recent) this.#positions.set(shard, { at: recent, triggerId: INITIAL_CURSOR.triggerId })
  }

  #forget(): void {
    for (let place = 0; place < SHARDS; place++)
      this.#positions.set((this.#firstShard + place) % SHARDS, INITIAL_CURSOR)
  }
}
