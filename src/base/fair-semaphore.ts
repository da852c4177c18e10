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

  /** Acquires a permit. `undefined` when the owner has its share, else a function that releases the permit; idempotent. */
  tryAcquire(owner: string): (() => void) | undefined {
    const held = this.#held.get(owner) ?? 0
    if (held >= this.#max - this.#total) return undefined
    this.#held.set(owner, held + 1)
    this.#total++
    let isHeld = true
    return () => {
      if (isHeld) this.#release(owner)
      isHeld = false
    }
  }

  #release(owner: string): void {
    const held = this.#held.get(owner) ?? 0
    if (held > 1) this.#held.set(owner, held - 1)
    else this.#held.delete(owner)
    this.#total--
  }
}
