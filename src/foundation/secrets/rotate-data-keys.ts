import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import { newId } from '../base/ids.ts'
import type { PollLoopSpec } from '../base/poll-loop.ts'
import type { Database } from '../database/database.ts'
import type { SealedValues, SecretStore } from './secret-store.ts'
import { findCurrentDataKey } from './sql/data-key.ts'
import {
  claimReplacedKey,
  completeRotation,
  type DataKeyRotation,
  deleteDataKey,
  findRotation,
  insertRotation,
  lockKeysToReplace,
  type ReplacedDataKey,
  readRotationProgress,
  renewReplacedKey,
  replaceDataKey,
  settleReplacedKey,
} from './sql/rotation.ts'

/** What the rotation of data keys takes. */
export interface DataKeyRotationDeps {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly secrets: Pick<SecretStore, 'createNextKey'>
  /** All that are encrypted under data keys. */
  readonly sealedValues: readonly SealedValues[]
}

const LOOP_INTERVAL_MS = 30 * SECOND_MS
/** Owners that get a new key in one transaction. */
const REPLACE_BATCH = 50
/** A key whose process died is claimed again after this; it is renewed after each page of values. */
const LEASE_MS = 20 * SECOND_MS
/** Values that were left are tried again after this. */
const RETRY_MS = 10 * MINUTE_MS
/**
 * How long a key without values is kept: far longer than a transaction that encrypts with it, or a reader that has read a
 * ciphertext and not yet its key, may last.
 */
const UNUSED_KEEP_MS = HOUR_MS

/**
 * Requests new data keys for one owner or for all that have one. A request that is under way with the same scope is continued.
 *
 * From then on every process encrypts with the new key, which it reads for each value it writes, and reads with both. The rest is
 * done by `continueRotation`.
 *
 * @returns whether the owner has a key at all
 */
export async function requestDataKeyRotation(
  { database }: Pick<DataKeyRotationDeps, 'database'>,
  ownerId: string | undefined,
): Promise<boolean> {
  if (ownerId !== undefined && (await findCurrentDataKey(database.pool, ownerId)) === undefined) return false
  await insertRotation(database.pool, { id: newId(), ownerId: ownerId ?? null })
  return true
}

/** Continues rotations, in any number of processes: each round is committed, and one that dies is repeated. */
export function dataKeyRotator(deps: DataKeyRotationDeps): PollLoopSpec {
  return { name: 'data-key-rotation', intervalMs: LOOP_INTERVAL_MS, runOnce: () => continueRotation(deps) }
}

/**
 * One round: gives owners their new key, or encrypts the values of a replaced key anew, or deletes one that nothing needs.
 *
 * @returns whether there was anything to do
 */
export async function continueRotation(deps: DataKeyRotationDeps): Promise<boolean> {
  const rotation = await findRotation(deps.database.pool)
  if (rotation !== undefined && (await replaceKeys(deps, rotation))) return true
  const key = await claimReplacedKey(deps.database.pool, LEASE_MS, UNUSED_KEEP_MS)
  if (key === undefined) return false
  await resealUnder(deps, key)
  return true
}

/** What is left of rotations, see `continueRotation`. */
export async function rotationProgress({ database }: Pick<DataKeyRotationDeps, 'database'>, ownerId?: string) {
  return await readRotationProgress(database.pool, ownerId)
}

/** @returns whether any was replaced */
async function replaceKeys({ database, secrets }: DataKeyRotationDeps, rotation: DataKeyRotation): Promise<boolean> {
  return await database.transaction(async (tx) => {
    const keys = await lockKeysToReplace(tx, rotation, REPLACE_BATCH)
    for (const { id, ownerId } of keys) {
      await replaceDataKey(tx, id)
      await secrets.createNextKey(tx, ownerId)
    }
    return keys.length > 0 || (await completeRotation(tx, rotation))
  })
}

async function resealUnder({ database, sealedValues }: DataKeyRotationDeps, key: ReplacedDataKey): Promise<void> {
  const { pool } = database
  const replaced = { ownerId: key.ownerId, dataKeyId: key.id }
  const renew = () => renewReplacedKey(pool, key.id, LEASE_MS)
  for (const values of sealedValues) await values.reseal(database, replaced, renew)
  let left = 0
  for (const values of sealedValues) left += await values.countUnder(pool, replaced)
  if (left === 0 && key.isUnused) await deleteDataKey(pool, key.id)
  else await settleReplacedKey(pool, key.id, left, left === 0 ? UNUSED_KEEP_MS : RETRY_MS)
}
