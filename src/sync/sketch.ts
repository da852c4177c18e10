/** Bits of the hashes that come in. */
const HASH_BITS = 53
const HIGH_BITS = HASH_BITS - 32
/** The character of an empty register; every later one is printable and needs no escape in JSON. */
const ZERO = '#'.charCodeAt(0)

/**
 * How many different values there were, about, in a few KiB (HyperLogLog, with the estimator of O. Ertl, "New cardinality
 * estimation algorithms for HyperLogLog sketches", 2017, which needs no correction tables).
 *
 * Of m = 2^precision registers each keeps the longest run of leading zeros among its hashes. The standard error is
 * 1.04/√m.
 */
export class Sketch {
  readonly #precision: number
  readonly #registers: Uint8Array

  /** @param text of an earlier sketch of the same precision; of another length: empty */
  constructor(precision: number, text = '') {
    this.#precision = precision
    this.#registers = new Uint8Array(2 ** precision)
    if (text.length !== this.#registers.length) return
    for (const [index] of this.#registers.entries()) this.#registers[index] = text.charCodeAt(index) - ZERO
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
    if (rank > (this.#registers[index] ?? 0)) this.#registers[index] = rank
  }

  estimate(): number {
    const { length } = this.#registers
    const highest = HASH_BITS - this.#precision + 1
    const counts = new Uint32Array(highest + 1)
    for (const rank of this.#registers) counts[rank] = (counts[rank] ?? 0) + 1
    const share = (rank: number) => (counts[rank] ?? 0) / length
    let sum = length * tau(1 - share(highest))
    for (let rank = highest - 1; rank >= 1; rank--) sum = (sum + (counts[rank] ?? 0)) / 2
    sum += length * sigma(share(0))
    return Math.round(length ** 2 / (2 * Math.LN2 * sum))
  }

  /** One character per register. */
  toString(): string {
    return Buffer.from(this.#registers.map((rank) => rank + ZERO)).toString('latin1')
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
