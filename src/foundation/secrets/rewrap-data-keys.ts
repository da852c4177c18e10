import type { Database } from '../database/database.ts'
import type { KeyRing } from './key-ring.ts'
import { lockDataKeysUnderOthers, type OwnedDataKey, registerKeyEncryptionKey, updateWrapped } from './sql/data-key.ts'

/** Data keys in one transaction: some ten milliseconds. */
const REWRAP_BATCH = 500

/** What rewrapping did. */
export interface RewrapResult {
  readonly rewrapped: number
  /** Key encryption keys that this process lacks, or has with other bytes; what they wrap stays. */
  readonly missingKeys: ReadonlySet<string>
}

/**
 * Wraps all data keys under the key that writes. The values under them are not touched: this costs a row per owner.
 *
 * Each batch is committed, and what is left to do is in the rows themselves: after an interruption it continues when it is
 * repeated, and several processes may do it at once.
 */
export async function rewrapDataKeys(
  database: Pick<Database, 'transaction'>,
  ring: KeyRing,
  onBatch: (rewrapped: number) => void,
): Promise<RewrapResult> {
  const missingKeys = new Set<string>()
  let rewrapped = 0
  for (let after: string | undefined; ; ) {
    const batch = await database.transaction(async (tx) => {
      await registerKeyEncryptionKey(tx, ring.writerId)
      const keys = await lockDataKeysUnderOthers(tx, ring.writerId, after, REWRAP_BATCH)
      let done = 0
      for (const key of keys) {
        const wrapped = tryRewrap(ring, key)
        if (wrapped === undefined) missingKeys.add(key.keyEncryptionKeyId)
        else await updateWrapped(tx, { id: key.id, ...wrapped })
        if (wrapped !== undefined) done++
      }
      return { done, last: keys.at(-1)?.id }
    })
    rewrapped += batch.done
    if (batch.last === undefined) return { rewrapped, missingKeys }
    onBatch(rewrapped)
    after = batch.last
  }
}

function tryRewrap(ring: KeyRing, key: OwnedDataKey) {
  try {
    return ring.rewrapDataKey(key, key.ownerId, key.id)
  } catch {
    return undefined
  }
}
