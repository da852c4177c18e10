import { hashText } from './hash-text.ts'
import { HyperLogLog } from './sketch.ts'

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
