/**
 * Requests whose responses are not closed: a set whose members come and go with every request, as an array with a free list.
 *
 * Map and Set do not fit: V8 links each outgrown hash table to its successor, and one such table in the old generation
 * keeps the members of all later ones alive until a full garbage collection. For active calls that was 2 KB of promoted
 * garbage and 8 µs of collection per call.
 */
export class OpenRequests<Item extends object> implements Iterable<Item> {
  readonly #items: (Item | undefined)[] = []
  readonly #free: number[] = []

  /** @returns the slot to remove the member by */
  add(item: Item): number {
    const slot = this.#free.pop() ?? this.#items.length
    this.#items[slot] = item
    return slot
  }

  /** Frees the slot; to be called once for each `add`. */
  remove(slot: number): void {
    this.#items[slot] = undefined
    this.#free.push(slot)
  }

  get isEmpty(): boolean {
    return this.#free.length === this.#items.length
  }

  *[Symbol.iterator](): Generator<Item> {
    for (const item of this.#items) if (item !== undefined) yield item
  }
}
