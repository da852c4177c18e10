/** Bits of the hashes that come in. */
const HASH_BITS = 53
const HIGH_BITS = HASH_BITS - 32
/** The character of an empty register; every later one is printable and needs no escape in JSON. */
const EMPTY = '#'.charCodeAt(0)

/**
 * How many different values there were, about, in a few KiB (HyperLogLog, with the estimator of O. Ertl, "New cardinality
 * estimation algorithms for HyperLogLog sketches", 2017, which needs no correction tables).
 *
 * Of m = 2^precision registers each keeps the longest run of leading zeros among its hashes. The standard error is
 * 1.04/√m. Registers are kept as the characters they are stored as, so that storing them is a copy.
 */
export class HyperLogLog {
  readonly #precision: number
  readonly #registers: Buffer
  /** How many registers hold each rank. */
  readonly #counts: Uint32Array

  /** @param text of an earlier sketch of the same precision; of another length: empty */
  constructor(precision: number, text = '') {
    const length = 2 ** precision
    this.#precision = precision
    this.#registers = text.length === length ? Buffer.from(text, 'latin1') : Buffer.alloc(length, EMPTY)
    this.#counts = new Uint32Array(HASH_BITS - precision + 2)
    for (const register of this.#registers) this.#count(register - EMPTY, 1)
  }

  /** Share of the estimate that it is off by, typically. */
  get standardError(): number {
    return 1.04 / Math.sqrt(this.#registers.length)
  }

  /** @param hash of `hashText` */
  add(hash: number): void {
    const low = hash >>> 0
    const index = low & (this.#registers.length - 1)
    const rank = this.#rankOf(Math.floor(hash / 2 ** 32), low >>> this.#precision)
    const before = (this.#registers[index] ?? EMPTY) - EMPTY
    if (rank <= before) return
    this.#registers[index] = rank + EMPTY
    this.#count(before, -1)
    this.#count(rank, 1)
  }

  estimate(): number {
    const { length } = this.#registers
    const highest = this.#counts.length - 1
    const countOf = (rank: number) => this.#counts[rank] ?? 0
    let sum = length * tau(1 - countOf(highest) / length)
    for (let rank = highest - 1; rank >= 1; rank--) sum = (sum + countOf(rank)) / 2
    sum += length * sigma(countOf(0) / length)
    return Math.round(length ** 2 / (2 * Math.LN2 * sum))
  }

  /** One character per register. */
  toString(): string {
    return this.#registers.toString('latin1')
  }

  #count(rank: number, change: 1 | -1): void {
    this.#counts[rank] = (this.#counts[rank] ?? 0) + change
  }

  /** The place of the first one in the bits that did not choose the register, from 1. */
  #rankOf(high: number, rest: number): number {
    if (high !== 0) return Math.clz32(high) - (32 - HIGH_BITS) + 1
    return HIGH_BITS + Math.clz32(rest) - this.#precision + 1
  }
}

/** Σ over k of x^(2^k) · 2^(k-1), and x: what registers that are still empty contribute. */
function sigma(share: number): number {
  if (share === 1) return Number.POSITIVE_INFINITY
  let [power, weight, sum] = [share, 1, share]
  for (let before = Number.NaN; sum !== before; weight *= 2) {
    power *= power
    before = sum
    sum += power * weight
  }
  return sum
}

/** The same for registers that are full. */
function tau(share: number): number {
  if (share === 0 || share === 1) return 0
  let [root, weight, sum] = [share, 1, 1 - share]
  for (let before = Number.NaN; sum !== before; ) {
    root = Math.sqrt(root)
    before = sum
    weight /= 2
    sum -= (1 - root) ** 2 * weight
  }
  return sum / 3
}
