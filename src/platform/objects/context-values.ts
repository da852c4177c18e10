import { LRUCache } from 'lru-cache'
import { Failure, invalidFields, newId, type Violation } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { type Json, type JsonObject, parseJson, stringifyJson } from '../../foundation/json/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import type { ObjectStore } from './object-store.ts'
import {
  type ContextObjectRecord,
  type ContextOwner,
  insertContextObjects,
  listContextObjects,
  retireContextObjects,
} from './sql.ts'

/** Largest value of a key, as JSON text in UTF-8. */
const CONTEXT_VALUE_BYTES_MAX = 1024 * 1024
/** What encryption adds at most, see `foundation/secrets/encryption.ts`. */
export const CONTEXT_OBJECT_BYTES_MAX = CONTEXT_VALUE_BYTES_MAX + 1024
/** Values read for one page of a list; a key beyond it is an error of that key. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024
/** Plain texts cached per process. Objects never change, so a cached one is never stale. */
const CACHED_BYTES_MAX = 32 * 1024 * 1024
const READS_AT_ONCE_MAX = 16
/** Until a replaced object is deleted: far longer than any reader takes that saw the row before, or an upload. */
export const RETIRED_KEEP_MS = 60 * 60 * 1000

/** Context values that live in the object store, of one account. */
export interface StoredContextValues {
  /** By key. */
  readonly values: JsonObject
  /** Why a key has no value here: CONTEXT_OBJECT_MISSING, OBJECT_STORE_UNAVAILABLE or SECRET_UNREADABLE. By key. */
  readonly errors: ReadonlyMap<string, Failure>
}

/** The context keys of accounts that live in the object store, encrypted like secrets. */
export interface ContextValueStore {
  /**
   * Stores values, in the transaction that changes the account's row, whose lock orders writers. The object store is not
   * asked: the encrypted value is in the database until a worker has stored it as an object.
   *
   * @throws Failure INVALID_FIELD with every value that is larger than 1 MiB
   */
  put(tx: Tx, owner: ContextOwner, values: JsonObject): Promise<void>
  /** Removes values, in the transaction that changes or deletes the account. @param keys absent: all */
  remove(tx: Tx, owner: ContextOwner, keys?: readonly string[]): Promise<void>
  /** The values of accounts by account id; accounts without any are absent. A value that cannot be read is an error of its key. */
  read(tx: Db, owners: readonly ContextOwner[]): Promise<ReadonlyMap<string, StoredContextValues>>
}

/** Creates the store of context values over an object store. */
export function createContextValueStore(
  secrets: Pick<SecretStore, 'encryptFor' | 'decryptFor'>,
  objects: Pick<ObjectStore, 'get'>,
): ContextValueStore {
  const cache = new LRUCache<string, string>({ maxSize: CACHED_BYTES_MAX, sizeCalculation: (text) => text.length + 1 })

  async function readOne(tx: Db, record: ContextObjectRecord): Promise<Json> {
    const cached = cache.get(record.id)
    if (cached !== undefined) return parseJson(cached)
    const encrypted = record.content ?? (await objects.get(record))
    if (encrypted === undefined) throw objectMissing(record.key)
    const bytes = await secrets.decryptFor(tx, record.environmentId, associatedData(record), encrypted)
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
    cache.set(record.id, text)
    return parseJson(text)
  }

  return {
    async put(tx, owner, values) {
      const texts = await encodeValues(values)
      await retireContextObjects(tx, owner, Object.keys(values), RETIRED_KEEP_MS)
      const encrypted = []
      for (const [key, text] of texts) {
        const object = { id: newId(), key, integratedAccountId: owner.id, environmentId: owner.environmentId }
        const content = await secrets.encryptFor(tx, owner.environmentId, associatedData(object), text)
        encrypted.push({ id: object.id, key, content })
      }
      await insertContextObjects(tx, owner, encrypted)
    },
    remove: (tx, owner, keys) => retireContextObjects(tx, owner, keys, RETIRED_KEEP_MS),
    async read(tx, owners) {
      const records = await listContextObjects(tx, owners)
      const results: KeyResult[] = []
      let bytesLeft = PAGE_BYTES_MAX
      for (let start = 0; start < records.length; start += READS_AT_ONCE_MAX) {
        const batch = records.slice(start, start + READS_AT_ONCE_MAX).map((record) => {
          bytesLeft -= record.bytes
          if (bytesLeft < 0) return { record, error: pageTooLarge(record.key) }
          return asResult(record, readOne(tx, record))
        })
        results.push(...(await Promise.all(batch)))
      }
      return groupByAccount(results)
    },
  }
}

/** The outcome of reading one key. */
type KeyResult =
  | { readonly record: ContextObjectRecord; readonly value: Json }
  | { readonly record: ContextObjectRecord; readonly error: Failure }

async function asResult(record: ContextObjectRecord, value: Promise<Json>): Promise<KeyResult> {
  try {
    return { record, value: await value }
  } catch (error) {
    if (error instanceof Failure) return { record, error }
    throw error
  }
}

function groupByAccount(results: readonly KeyResult[]): ReadonlyMap<string, StoredContextValues> {
  const groups = Map.groupBy(results, ({ record }) => record.integratedAccountId)
  return new Map(
    [...groups].map(([accountId, group]) => {
      const values = group.flatMap((each) => ('value' in each ? [[each.record.key, each.value] as const] : []))
      const errors = group.flatMap((each) => ('error' in each ? [[each.record.key, each.error] as const] : []))
      return [accountId, { values: Object.fromEntries(values), errors: new Map(errors) }]
    }),
  )
}

/** Values as JSON texts. @throws Failure INVALID_FIELD with every value that is too large */
async function encodeValues(values: JsonObject): Promise<readonly (readonly [string, Uint8Array])[]> {
  const entries = Object.entries<Json>(values)
  const texts = await Promise.all(
    entries.map(async ([key, value]) => [key, Buffer.from(await stringifyJson(value))] as const),
  )
  const violations = texts.flatMap(([key, text]): Violation[] =>
    text.length > CONTEXT_VALUE_BYTES_MAX ? [tooLarge(key)] : [],
  )
  if (violations.length > 0) throw invalidFields(violations)
  return texts
}

function tooLarge(key: string): Violation {
  const description = `is larger than ${CONTEXT_VALUE_BYTES_MAX} bytes of JSON, the most that a key in the object store takes`
  return { field: `context.${key}`, description, rule: 'context.too_large' }
}

/** Names table, row and owner: a value that was copied elsewhere does not decrypt. */
export function associatedData({
  id,
  integratedAccountId,
  key,
}: Pick<ContextObjectRecord, 'id' | 'integratedAccountId' | 'key'>): string {
  return `context_object|${id}|${integratedAccountId.toLowerCase()}|${key}`
}

function objectMissing(key: string): Failure {
  const message = `the value of the context key ${key} is missing in the object store: set it again, or restore the object`
  return new Failure('CONTEXT_OBJECT_MISSING', message, { metadata: { key } })
}

function pageTooLarge(key: string): Failure {
  const message = `the value of the context key ${key} is not read, because the page is too large: read the account alone`
  return new Failure('OBJECT_STORE_UNAVAILABLE', message, { metadata: { key } })
}
