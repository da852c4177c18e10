import { hash } from 'node:crypto'

/** The state of a counter in a checkpoint. Without known fields, as a version before stored it, counting begins anew. */
export type DistinctState = {
  /** Records that were counted, duplicates included. */
  readonly counted?: number
  /** Hashes of their identifiers, one behind the other. Absent once counting has stopped. */
  readonly hashes?: string
  /** How many identifiers they had, once counting has stopped. */
  readonly distinct?: number
}

/** Distinct records of one node. */
export interface DistinctCount {
  readonly distinct: number
  /** Records whose identifier was counted before. */
  readonly duplicates: number
  /** Both are lower bounds: counting has stopped before the last record. */
  readonly isEstimate: boolean
}

/**
 * Identifiers of one run, over all its nodes. A checkpoint, which is stored with every page, has 80 KB of them at most; 100 000
 * would be 800 KB.
 */
export const IDENTIFIERS_MAX = 10_000
/** 48 bits in base64: among IDENTIFIERS_MAX identifiers two have the same hash in one of five million runs. */
const HASH_LENGTH = 8

/** Counts distinct identifiers in a set of their hashes, exactly until it stops. */
export class DistinctCounter {
  #counted: number
  /** Identifiers of the records that were counted. */
  #distinct: number
  #hashes: Set<string> | undefined

  constructor({ counted = 0, hashes = '', distinct }: DistinctState = {}) {
    this.#counted = counted
    this.#hashes = distinct === undefined ? new Set(hashes.match(/.{8}/g)) : undefined
    this.#distinct = distinct ?? this.#hashes?.size ?? 0
  }

  /** Identifiers that it holds; 0 once it has stopped. */
  get size(): number {
    return this.#hashes?.size ?? 0
  }

  /** Adds the identifiers of a page, in any order. Stops before the first new one beyond IDENTIFIERS_MAX. */
  add(identifiers: Iterable<string>): void {
    const hashes = this.#hashes
    if (hashes === undefined) return
    for (const identifier of identifiers) {
      const key = hash('sha256', identifier, 'base64').slice(0, HASH_LENGTH)
      if (hashes.size === IDENTIFIERS_MAX && !hashes.has(key)) {
        this.stop()
        return
      }
      this.#distinct = hashes.add(key).size
      this.#counted += 1
    }
  }

  /** Forgets the identifiers: what is added from now on is not counted. */
  stop(): void {
    this.#hashes = undefined
  }

  /** @param records number of records of the node */
  count(records: number): DistinctCount {
    const duplicates = this.#counted - this.#distinct
    return { distinct: this.#distinct, duplicates, isEstimate: this.#counted < records }
  }

  get state(): DistinctState {
    const counted = this.#counted
    return this.#hashes === undefined
      ? { counted, distinct: this.#distinct }
      : { counted, hashes: [...this.#hashes].join('') }
  }
}
