/**
 * Fair queue (round-robin over owners): each `shift` takes one item of the next owner, so that a long queue of one owner
 * delays the others by at most one item.
 */
export class FairQueue<T extends { readonly owner: string }> {
  readonly #lines = new Map<string, T[]>()
  readonly #perOwnerMax: number
  #size = 0

  /** @param perOwnerMax most items of one owner */
  constructor(perOwnerMax: number) {
    this.#perOwnerMax = perOwnerMax
  }

  get size(): number {
    return this.#size
  }

  /** True when the owner's queue has reached its limit. */
  isFull(owner: string): boolean {
    return (this.#lines.get(owner)?.length ?? 0) >= this.#perOwnerMax
  }

  /** Adds an item to the end of its owner's queue; the caller checks `isFull`. */
  push(item: T): void {
    const line = this.#lines.get(item.owner)
    if (line) line.push(item)
    else this.#lines.set(item.owner, [item])
    this.#size++
  }

  /** Removes an item that waits. @returns false when it does not wait any more */
  remove(item: T): boolean {
    const line = this.#lines.get(item.owner) ?? []
    const index = line.indexOf(item)
    if (index === -1) return false
    line.splice(index, 1)
    if (line.length === 0) this.#lines.delete(item.owner)
    this.#size--
    return true
  }

  /** Returns an item to the head of its owner's queue. */
  requeue(item: T): void {
    const line = this.#lines.get(item.owner)
    if (line) line.unshift(item)
    else this.#lines.set(item.owner, [item])
    this.#size++
  }

  /**
   * The next item; its owner moves to the end of the round.
   *
   * @param mayServe passes over an owner, which keeps its place in the round; absent: every owner is served
   */
  shift(mayServe?: (owner: string) => boolean): T | undefined {
    for (const [owner, line] of this.#lines) {
      if (mayServe?.(owner) === false) continue
      const item = line.shift()
      // An owner alone keeps its place: each entry that is set anew brings the map nearer to a copy of itself.
      if (line.length === 0) this.#lines.delete(owner)
      else if (this.#lines.size > 1) {
        this.#lines.delete(owner)
        this.#lines.set(owner, line)
      }
      if (item === undefined) continue
      this.#size--
      return item
    }
    return undefined
  }
}
