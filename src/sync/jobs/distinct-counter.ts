/** The state of a counter in a checkpoint: one of the two. */
export type DistinctState = {
  /** Hashes of the ids, up to `checkpointMax`. */
  readonly ids?: readonly number[]
  /** Registers of the HyperLogLog sketch, beyond that. */
  readonly sketch?: string
}

/** Distinct records of one node. */
export interface DistinctCount {
  readonly distinct: number
  /** Records whose id was counted before. */
  readonly duplicates: number
  /** Both are estimates; duplicates within the standard error are reported as none. */
  readonly isEstimate: boolean
}

/** Memory limits of one node. */
export interface DistinctLimits {
  /** Hashes kept in memory for an exact count. */
  readonly exactMax: number
  /** Hashes in a checkpoint. */
  readonly checkpointMax: number
  /** Precision of the sketch: 2^precision registers. */
  readonly precision: number
}

/** Registers of all sketches of one run, in a checkpoint. */
const REGISTERS_OF_RUN_MAX = 32 * 1024
const PRECISION_MIN = 6
const PRECISION_MAX = 12
/** Characters of a hash in a checkpoint; a register has one. */
const REGISTERS_PER_HASH = 16
/** Hashes in memory for one run; 40 bytes each. */
const EXACT_HASHES_OF_RUN_MAX = 100_000
/** Confidence interval: 3 standard errors, exceeded in one of 370 cases. */
const STANDARD_ERRORS = 3

/** Divides the limits of a run among its nodes. */
export function distinctLimits(nodes: number): DistinctLimits {
  const fitting = Math.floor(Math.log2(REGISTERS_OF_RUN_MAX / nodes))
  const precision = Math.min(PRECISION_MAX, Math.max(PRECISION_MIN, fitting))
  const keptMax = 2 ** precision / REGISTERS_PER_HASH
  return { precision, checkpointMax: keptMax, exactMax: Math.max(keptMax, Math.floor(EXACT_HASHES_OF_RUN_MAX / nodes)) }
}

/**
 * Counts distinct ids: exactly up to a limit, then by a HyperLogLog sketch. A run that is resumed by another process counts by
 * the sketch as soon as its checkpoint no longer holds every id.
 */
export class DistinctCounter {
  readonly #limits: DistinctLimits
  readonly #sketch: HyperLogLog
  /** Absent when there are too many, or not all are known. */
  #exact: Set<number> | undefined

  constructor(limits: DistinctLimits, state: DistinctState = {}) {
    this.#limits = limits
    this.#sketch = new HyperLogLog(limits.precision, state.sketch)
    this.#exact = state.sketch === undefined ? new Set(state.ids) : undefined
    for (const hash of state.ids ?? []) this.#sketch.add(hash)
  }

  /** Adds the ids of a page, in any order. */
  add(ids: readonly string[]): void {
    for (const id of ids) {
      const hash = hashText(id)
      this.#sketch.add(hash)
      this.#exact?.add(hash)
    }
    if (this.#exact !== undefined && this.#exact.size > this.#limits.exactMax) this.#exact = undefined
  }

  /** @param records number of ids added */
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

/** Bits of the hashes. */
const HASH_BITS = 53
const HIGH_BITS = HASH_BITS - 32
/** The character of an empty register; every later one is printable and needs no escape in JSON. */
const EMPTY = '#'.charCodeAt(0)

/**
 * HyperLogLog: estimates the number of distinct values in a few KiB, with the estimator of O. Ertl ("New cardinality estimation
 * algorithms for HyperLogLog sketches", 2017), which needs no correction tables.
 *
 * Of m = 2^precision registers each keeps the longest run of leading zeros among its hashes. The standard error is
 * 1.04/√m. Registers are characters, so that serialising them is a copy.
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
 * A 53-bit hash of a text as a safe integer, evenly distributed and stable across processes. Not collision-resistant against
 * chosen texts.
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
