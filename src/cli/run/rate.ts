/** Long enough to even out pages, short enough to show that a third party slows down. */
const RATE_WINDOW_MS = 10_000

/** How fast a count has grown lately. */
export class RateMeter {
  #samples: readonly { readonly atMs: number; readonly count: number }[] = []

  /** Notes the count; one that has not changed needs no note. */
  add(count: number, atMs: number): void {
    if (this.#samples.at(-1)?.count === count) return
    const [before] = this.#samples.filter((sample) => sample.atMs < atMs - RATE_WINDOW_MS).slice(-1)
    const recent = this.#samples.filter((sample) => sample.atMs >= atMs - RATE_WINDOW_MS)
    this.#samples = [...(before === undefined ? [] : [before]), ...recent, { atMs, count }]
  }

  /** Since the count last changed. */
  idleMs(nowMs: number): number {
    return nowMs - (this.#samples.at(-1)?.atMs ?? nowMs)
  }

  /** Per second; 0 after a window without a change, and before the second note. */
  perSecond(nowMs: number): number {
    const [first, last] = [this.#samples.at(0), this.#samples.at(-1)]
    if (first === undefined || last === undefined || first === last || nowMs - last.atMs > RATE_WINDOW_MS) return 0
    return ((last.count - first.count) * 1_000) / Math.max(1_000, nowMs - first.atMs)
  }
}
