import { newId } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import {
  dataKeyIdOf,
  type ReplacedKey,
  resealed,
  type SealedValues,
  type SecretStore,
} from '../../foundation/secrets/index.ts'
import { associatedData, RETIRED_KEEP_MS } from './context-values.ts'
import type { ObjectStore } from './object-store.ts'
import {
  countObjectsUnder,
  countSealedObjects,
  listObjectsUnder,
  replaceObject,
  type SealedObjectRecord,
  storeDataKey,
} from './sql.ts'

/** Each may have a megabyte. */
const PAGE = 8

/** What reading and replacing encrypted values takes. */
interface SealedObjectDeps {
  readonly secrets: Pick<SecretStore, 'encryptFor' | 'decryptFor'>
  readonly objects: Pick<ObjectStore, 'get'>
}

/**
 * Context values in the object store or on their way to it, for the rotation of data keys. An object is never written again: a
 * value that is encrypted anew becomes a new object, and the one before is deleted an hour later.
 */
export function sealedContextObjects(deps: SealedObjectDeps): SealedValues {
  return {
    name: 'context_object.content',
    count: countSealedObjects,
    countUnder: (tx, { ownerId, dataKeyId }) => countObjectsUnder(tx, ownerId, dataKeyId),
    async reseal(database, key, onPage) {
      for (let after: string | undefined; ; ) {
        const records = await listObjectsUnder(database.pool, key.ownerId, key.dataKeyId, after, PAGE)
        for (const record of records) await resealObject(deps, database, key, record)
        if (records.length < PAGE) return
        after = records.at(-1)?.id
        await onPage()
      }
    },
  }
}

/** A value whose object is missing, or that does not decrypt, stays. @throws Failure OBJECT_STORE_UNAVAILABLE */
async function resealObject(
  { secrets, objects }: SealedObjectDeps,
  database: Pick<Database, 'pool' | 'transaction'>,
  { ownerId, dataKeyId }: ReplacedKey,
  record: SealedObjectRecord,
): Promise<void> {
  const sealed = record.content ?? (await objects.get(record))
  if (sealed === undefined) return
  const dataKeyBefore = dataKeyIdOf(sealed)
  if (record.dataKeyId === null) await storeDataKey(database.pool, record, dataKeyBefore)
  if (dataKeyBefore !== dataKeyId) return
  const id = newId()
  const [before, next] = [associatedData(record), associatedData({ ...record, id })]
  const content = await resealed(secrets, database.pool, ownerId, sealed, before, next)
  if (content === undefined) return
  await database.transaction((tx) =>
    replaceObject(tx, record, { id, content, dataKeyBefore, delayMs: RETIRED_KEEP_MS }),
  )
}
