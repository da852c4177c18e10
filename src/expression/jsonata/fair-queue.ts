/**
 * A queue that serves owners in turn: each `shift` takes one item of the next owner, so that a long line of one owner
 * costs the others at most one item's wait.
 */
export class FairQueue<T extends { readonly owner: string }> {
  readonly #lines = new Map<string, T[]>()
  readonly #perOwnerMax: number
  #size = 0

  /** @param perOwnerMax how many items make an owner's line full */
  constructor(perOwnerMax: number) {
    this.#perOwnerMax = perOwnerMax
  }

  get size(): number {
    return this.#size
  }

  /** Whether the owner's line is as long as a new item may find it. */
  isFull(owner: string): boolean {
    return (this.#lines.get(owner)?.length ?? 0) >= this.#perOwnerMax
  }

  /** Adds an item to the end of its owner's line; whether there is room is for the caller to ask. */
  push(item: T): void {
    const line = this.#lines.get(item.owner)
    if (line) line.push(item)
    else this.#lines.set(item.owner, [item])
    this.#size++
  }

  /** Returns an item to the head of its owner's line. */
  requeue(item: T): void {
    const line = this.#lines.get(item.owner)
    if (line) line.unshift(item)
    else this.#lines.set(item.owner, [item])
    this.#size++
  }

  /** The next item; its owner goes to the end of the round. */
  shift(): T | undefined {
    for (const [owner, line] of this.#lines) {
      const item = line.shift()
      this.#lines.delete(owner)
      if (line.length > 0) this.#lines.set(owner, line)
      if (item === undefined) continue
      this.#size--
      return item
    }
    return undefined
  }
}
