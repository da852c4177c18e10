/**
 * Semaphore with fair shares: limits how many permits (open streams, for example) all owners hold together, so that one
 * owner cannot starve the others. An owner may hold no more permits than are free (the dynamic threshold of shared
 * buffers): a single owner gets half of them, two get a third each, and a new owner gets one whenever one is free.
 */
export class FairSemaphore {
  readonly #max: number
  readonly #held = new Map<string, number>()
  #total = 0

  /** @param max permits of all owners together */
  constructor(max: number) {
    this.#max = max
  }

  /**
   * Acquires permits, all or none. `undefined` when the owner would have more than its share, else a function that releases them;
   * idempotent.
   */
  tryAcquire(owner: string, count = 1): (() => void) | undefined {
    const held = this.#held.get(owner) ?? 0
    if (held + count > this.#max - this.#total) return undefined
    this.#held.set(owner, held + count)
    this.#total += count
    let isHeld = true
    return () => {
      if (isHeld) this.#release(owner, count)
      isHeld = false
    }
  }

  #release(owner: string, count: number): void {
    const held = (this.#held.get(owner) ?? 0) - count
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
    this.#total -= count
  }
}
