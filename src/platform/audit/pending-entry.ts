import type { CompanionRow } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import { type AuditEntryInput, entryValues, INSERT_ENTRY, insertEntry } from './sql/entry.ts'

/**
 * The entry of a call that is being made: stored with the first thing that the call stores (`CompanionRow`), so that neither is
 * there without the other.
 */
export class PendingEntry implements CompanionRow {
  readonly text = INSERT_ENTRY
  readonly #read: (answer: unknown) => AuditEntryInput
  #answer: unknown
  isStored = false

  /** @param read the entry, given the answer of the call; `undefined` while there is none */
  constructor(read: (answer: unknown) => AuditEntryInput) {
    this.#read = read
  }

  /** Notes the answer, for what the request does not say: the id of what was created. */
  noteAnswer(answer: unknown): void {
    this.#answer = answer
  }

  values(): readonly (string | null)[] {
    return entryValues(this.#read(this.#answer), false)
  }

  /** Stores the entry of a call that has succeeded and stored nothing, such as a change to what is there already. */
  async storeAlone({ pool }: Database): Promise<void> {
    if (this.isStored) return
    await insertEntry(pool, this.#read(this.#answer))
    this.isStored = true
  }
}
