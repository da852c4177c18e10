import { LRUCache } from 'lru-cache'
import { Failure, newId } from '../base/index.ts'
import type { Tx } from '../database/index.ts'
import { decrypt, encrypt } from './encryption.ts'
import type { KeyRing } from './key-ring.ts'
import {
  type DataKeyRecord,
  deleteSecrets,
  deleteSecretsAndKeys,
  type EncryptedSecret,
  findCurrentDataKey,
  findDataKey,
  insertDataKey,
  listDataKeySamples,
  listSecrets,
  type SecretRef,
  upsertSecret,
} from './sql.ts'

/** Unwrapped data keys kept in memory, per process. */
const DATA_KEYS_CACHED_MAX = 1_000
/** Opened values kept in memory, per process: opening one costs as much as reading its row. */
const TEXTS_CACHED_MAX = 5_000

/** Encrypted values of a subject, by name. Whoever holds this sees plain text, nobody else does. */
export interface SecretStore {
  /** Stores or replaces the given values; others of the subject stay. */
  put(tx: Tx, ref: SecretRef, values: Readonly<Record<string, string>>): Promise<void>
  /** All values of the subject, `{}` when there are none. @throws Failure SECRET_UNREADABLE when a row does not open */
  get(tx: Tx, ref: SecretRef): Promise<Record<string, string>>
  /** The same for rows of the subject that were read already. */
  decryptAll(tx: Tx, ref: SecretRef, rows: readonly EncryptedSecret[]): Promise<Record<string, string>>
  /** Removes the named values, or all. */
  remove(tx: Tx, ref: SecretRef, names?: readonly string[]): Promise<void>
  /** Makes everything the owner ever stored unreadable, in backups too. */
  destroyKeys(tx: Tx, ownerId: string): Promise<void>
  /** Seals bytes for a column outside the secret table; `place` names table, column and row. */
  encryptFor(tx: Tx, ownerId: string, place: string, bytes: Uint8Array): Promise<Uint8Array>
  /** Opens what `sealFor` made for the same owner and place. @throws Failure SECRET_UNREADABLE */
  decryptFor(tx: Tx, ownerId: string, place: string, sealed: Uint8Array): Promise<Uint8Array>
}

/**
 * Envelope encryption at rest: key ring → data key per owner, stored wrapped → one derived key per value.
 *
 * The place of a value (table, column, subject, name, owner) is authenticated: a row copied to another tenant, subject
 * or name does not open.
 */
export function createSecretStore(ring: KeyRing): SecretStore {
  const opened = new LRUCache<string, Uint8Array>({ max: DATA_KEYS_CACHED_MAX })
  /** By place and ciphertext, which open to nothing else: what is stored anew, or elsewhere, is not found here. */
  const texts = new LRUCache<string, string>({ max: TEXTS_CACHED_MAX })

  /** Not cached by owner: a key made in a transaction that rolls back never existed. */
  async function currentKey(tx: Tx, ownerId: string): Promise<{ readonly id: string; readonly key: Uint8Array }> {
    const record = (await findCurrentDataKey(tx, ownerId)) ?? (await createKey(tx, ownerId))
    return { id: record.id, key: open(ownerId, record) }
  }

  async function createKey(tx: Tx, ownerId: string): Promise<DataKeyRecord> {
    const id = newId()
    await insertDataKey(tx, ownerId, { id, ...ring.createDataKey(ownerId, id) })
    const stored = await findCurrentDataKey(tx, ownerId)
    if (stored === undefined) throw new Error(`no data key for ${ownerId} right after it was made`)
    return stored
  }

  async function keyById(tx: Tx, ownerId: string, id: string): Promise<Uint8Array> {
    const cached = opened.get(id)
    if (cached !== undefined) return cached
    const record = await findDataKey(tx, ownerId, id)
    if (record === undefined) throw secretUnreadable(new Error(`no data key ${id} of ${ownerId}`))
    return open(ownerId, record)
  }

  function open(ownerId: string, record: DataKeyRecord): Uint8Array {
    const key = opened.get(record.id) ?? asUnreadable(() => ring.unwrapDataKey(record, ownerId, record.id))
    opened.set(record.id, key)
    return key
  }

  async function textOf(tx: Tx, ref: SecretRef, { name, dataKeyId, sealed }: EncryptedSecret): Promise<string> {
    const place = secretAad(ref, name)
    const memo = `${place}|${Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength).toString('latin1')}`
    const known = texts.get(memo)
    if (known !== undefined) return known
    const key = await keyById(tx, ref.ownerId, dataKeyId)
    const text = asUnreadable(() => decrypt(key, place, sealed)).toString('utf8')
    texts.set(memo, text)
    return text
  }

  async function openAll(tx: Tx, ref: SecretRef, rows: readonly EncryptedSecret[]): Promise<Record<string, string>> {
    const values: Record<string, string> = {}
    for (const row of rows) values[row.name] = await textOf(tx, ref, row)
    return values
  }

  return {
    decryptAll: openAll,
    async put(tx, ref, values) {
      const entries = Object.entries(values)
      if (entries.length === 0) return
      const { id, key } = await currentKey(tx, ref.ownerId)
      for (const [name, text] of entries)
        await upsertSecret(tx, ref, { name, dataKeyId: id, sealed: encrypt(key, secretAad(ref, name), text) })
    },
    get: async (tx, ref) => await openAll(tx, ref, await listSecrets(tx, ref)),
    remove: deleteSecrets,
    destroyKeys: deleteSecretsAndKeys,
    async encryptFor(tx, ownerId, place, bytes) {
      const { id, key } = await currentKey(tx, ownerId)
      return Buffer.concat([Buffer.from(id.replaceAll('-', ''), 'hex'), encrypt(key, `${place}|${ownerId}`, bytes)])
    },
    async decryptFor(tx, ownerId, place, sealed) {
      const key = await keyById(tx, ownerId, uuidOf(sealed.subarray(0, UUID_BYTES)))
      return asUnreadable(() => decrypt(key, `${place}|${ownerId}`, sealed.subarray(UUID_BYTES)))
    },
  }
}

/**
 * Finds a key encryption key that the database was written with and the ring does not hold, or holds with other bytes.
 *
 * @returns its id; `undefined` when the ring opens everything
 */
export async function findUnreadableKey(tx: Tx, ring: KeyRing): Promise<string | undefined> {
  const samples = await listDataKeySamples(tx)
  return samples.find((sample) => !canUnwrap(ring, sample))?.keyEncryptionKeyId
}

function canUnwrap(ring: KeyRing, sample: DataKeyRecord & { readonly ownerId: string }): boolean {
  try {
    return ring.unwrapDataKey(sample, sample.ownerId, sample.id).length > 0
  } catch {
    return false
  }
}

const UUID_BYTES = 16

function uuidOf(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Ids in one spelling: the same row may be addressed in capitals. */
function secretAad({ ownerId, subjectType, subjectId }: SecretRef, name: string): string {
  return `secret|sealed|${subjectType}|${subjectId.toLowerCase()}|${name}|${ownerId.toLowerCase()}`
}

function asUnreadable<Result>(open: () => Result): Result {
  try {
    return open()
  } catch (cause) {
    throw secretUnreadable(cause)
  }
}

function secretUnreadable(cause: unknown): Failure {
  return new Failure('SECRET_UNREADABLE', 'a stored secret cannot be decrypted: check PATCHBAY_ENCRYPTION_KEYS', {
    cause,
  })
}
