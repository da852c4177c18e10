/**
 * A queue that serves owners in turn: each `shift` takes one item of the next owner, so that a long line of one owner
 * costs the others at most one item's wait.
 */
export class FairQueue<T extends { readonly owner: string }> {
  readonly #lines = new Map<string, T[]>()
  readonly #perOwnerMax: number
  #size = 0

  /** @param perOwnerMax how many items of one owner may wait */
  constructor(perOwnerMax: number) {
    this.#perOwnerMax = perOwnerMax
  }

  get size(): number {
    return this.#size
  }

  /** @returns false when the owner's line is full */
  push(item: T): boolean {
    const line = this.#lines.get(item.owner)
    if (line && line.length >= this.#perOwnerMax) return false
    if (line) line.push(item)
    else this.#lines.set(item.owner, [item])
    this.#size++
    return true
  }

  /** Returns an item to the head of its owner's line, whatever the line's length. */
  putBack(item: T): void {
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
