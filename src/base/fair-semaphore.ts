/**
 * A limited number of places, such as open streams, shared so that one owner cannot keep the others out: an owner may
 * hold no more places than are free (the dynamic threshold of shared buffers). One owner alone gets half of them, two
 * get a third each, and a newcomer gets a place whenever one is free.
 */
export class FairSemaphore {
  readonly #max: number
  readonly #held = new Map<string, number>()
  #total = 0

  /** @param max places of all owners together */
  constructor(max: number) {
    this.#max = max
  }

  /** Takes a place. `undefined` when the owner has its share; else a function that gives the place back, once. */
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
