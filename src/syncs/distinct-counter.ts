/** What a checkpoint keeps of the ids seen; one of the two. */
export type DistinctState = {
  /** Their hashes, while they are few. */
  readonly ids?: readonly number[]
  /** A sketch of them, once they are many. */
  readonly sketch?: string
}

/** How many of one node's records were different. */
export interface DistinctCount {
  readonly distinct: number
  /** Records that were there before. */
  readonly duplicates: number
  /** Both are estimates: duplicates within the error of the estimate are none. */
  readonly isEstimate: boolean
}

/** Bounds of one node's memory. */
export interface DistinctLimits {
  /** Hashes remembered one by one in this process. */
  readonly exactMax: number
  /** Hashes that a checkpoint lists. */
  readonly checkpointMax: number
  /** Of the sketch. */
  readonly precision: number
}

/** All sketches of one run, in a checkpoint. */
const REGISTERS_OF_RUN_MAX = 32 * 1024
const PRECISION_MIN = 6
const PRECISION_MAX = 12
/** A hash in a checkpoint is as long as so many registers. */
const REGISTERS_PER_HASH = 16
/** Hashes remembered by one run; 40 bytes each. */
const EXACT_HASHES_OF_RUN_MAX = 100_000
/** Estimates are wrong by more in one of 370 cases. */
const STANDARD_ERRORS = 3

/** Divides the bounds of a run between its nodes. */
export function distinctLimits(nodes: number): DistinctLimits {
  const fitting = Math.floor(Math.log2(REGISTERS_OF_RUN_MAX / nodes))
  const precision = Math.min(PRECISION_MAX, Math.max(PRECISION_MIN, fitting))
  const keptMax = 2 ** precision / REGISTERS_PER_HASH
  return { precision, checkpointMax: keptMax, exactMax: Math.max(keptMax, Math.floor(EXACT_HASHES_OF_RUN_MAX / nodes)) }
}

/**
 * Counts the different ids among those it is told: exactly up to a bound, then about. A run that goes on in another
 * process counts about as soon as its checkpoint no longer lists every id.
 */
export class DistinctCounter {
  readonly #limits: DistinctLimits
  readonly #sketch: HyperLogLog
  /** Absent once there are too many, or not all are known. */
  #exact: Set<number> | undefined

  constructor(limits: DistinctLimits, state: DistinctState = {}) {
    this.#limits = limits
    this.#sketch = new HyperLogLog(limits.precision, state.sketch)
    this.#exact = state.sketch === undefined ? new Set(state.ids) : undefined
    for (const hash of state.ids ?? []) this.#sketch.add(hash)
  }

  /** Notes a page. The order within it and between pages does not matter. */
  add(ids: readonly string[]): void {
    for (const id of ids) {
      const hash = hashText(id)
      this.#sketch.add(hash)
      this.#exact?.add(hash)
    }
    if (this.#exact !== undefined && this.#exact.size > this.#limits.exactMax) this.#exact = undefined
  }

  /** @param records all that were told */
  count(records: number): DistinctCount {
    if (this.#exact !== undefined)
      return { distinct: this.#exact.size, duplicates: records - this.#exact.size, isEstimate: false }
    const estimate = Math.min(records, this.#sketch.estimate())
    const margin = STANDARD_ERRORS * this.#sketch.standardError * estimate
    const missing = records - estimate
    const duplicates = missing > margin ? missing : 0
    return { distinct: records - duplicates, duplicates, isEstimate: true }
  }

  get state(): DistinctState {
    const exact = this.#exact
    if (exact !== undefined && exact.size <= this.#limits.checkpointMax) return { ids: [...exact] }
    return { sketch: this.#sketch.toString() }
  }
}

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

/**
 * 53 bits of a text as a safe integer: evenly spread, fast, the same in every process. Not for texts that somebody might
 * choose in order to make two collide.
 */
export function hashText(text: string): number {
  let low = 0x2545f491
  let high = 0x4f6cdd1d
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    low = rotateLeft(Math.imul(low ^ unit, 0x9e3779b1), 15)
    high = rotateLeft(Math.imul(high ^ unit, 0x85ebca77), 13)
  }
  low = avalanche(low ^ text.length)
  high = avalanche(high ^ low)
  return (high >>> 11) * 2 ** 32 + (low >>> 0)
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits))
}

/** Lets every bit depend on every other (the finalizer of MurmurHash3). */
function avalanche(value: number): number {
  const first = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35)
  return second ^ (second >>> 16)
}
