import { LRUCache } from 'lru-cache'
import { Failure } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { createSealer, type Sealer } from '../base/sealer.ts'
import type { Database, Db } from '../database/database.ts'
import { decrypt, encrypt } from './encryption.ts'
import type { KeyRing } from './key-ring.ts'
import {
  type DataKeyRecord,
  findCurrentDataKey,
  findDataKey,
  insertDataKey,
  listDataKeySamples,
  type OwnedDataKey,
  readOthersUnderLock,
} from './sql/data-key.ts'
import { countSealedSecrets, type SealedCount } from './sql/sealed-column.ts'
import {
  countSecretsUnder,
  deleteSecrets,
  deleteSecretsAndKeys,
  type EncryptedSecret,
  listSecrets,
  listSecretsUnder,
  type PlacedSecret,
  replaceSealedSecret,
  type SecretRef,
  upsertSecret,
} from './sql/secret.ts'

/** What a key of the ring is derived for that seals what clients hold. */
export const CLIENT_VALUES = 'client_values'

/** Unwrapped data keys cached per process. */
const DATA_KEYS_CACHED_MAX = 1_000
/** Decrypted values cached per process: decrypting one costs as much as reading its row. */
const PLAINTEXTS_CACHED_MAX = 5_000

/** A value for a column outside the secret table, with its associated data. */
interface OpenValue {
  readonly aad: string
  readonly bytes: Uint8Array
}

/** Encrypted values of a subject, by name; the only place that turns them into plain text. */
export interface SecretStore {
  /** Stores or replaces the given values; others of the subject stay. */
  put(tx: Db, ref: SecretRef, values: Readonly<Record<string, string>>): Promise<void>
  /** All values of the subject, `{}` when there are none. @throws Failure SECRET_UNREADABLE when one does not decrypt */
  get(tx: Db, ref: SecretRef): Promise<Record<string, string>>
  /** The same for rows of the subject that were read already. */
  decryptAll(tx: Db, ref: SecretRef, secrets: readonly EncryptedSecret[]): Promise<Record<string, string>>
  /** Removes the named values, or all. */
  remove(tx: Db, ref: SecretRef, names?: readonly string[]): Promise<void>
  /** Crypto-shredding: makes everything the owner ever stored unreadable here. Copies in backups need more: `deleteSecretsAndKeys`. */
  destroyKeys(tx: Db, ownerId: string): Promise<void>
  /** Encrypts bytes for a column outside the secret table. @param aad associated data: table, column and row */
  encryptFor(tx: Db, ownerId: string, aad: string, bytes: Uint8Array): Promise<Uint8Array>
  /** As `encryptFor`, of many values with one read of the owner's key; in their order. */
  encryptAllFor(tx: Db, ownerId: string, values: readonly OpenValue[]): Promise<readonly Uint8Array[]>
  /** Decrypts what `encryptFor` made for the same owner and associated data. @throws Failure SECRET_UNREADABLE */
  decryptFor(tx: Db, ownerId: string, aad: string, encrypted: Uint8Array): Promise<Uint8Array>
  /** Seals what clients hold, under keys of the ring: every process opens what another one sealed. */
  readonly sealer: Sealer
  /** Replaces the current data key of an owner, in a transaction that has locked it. Values under it stay readable. */
  createNextKey(tx: Db, ownerId: string): Promise<void>
  /** The secrets, for rotations. */
  readonly sealedSecrets: SealedValues
}

/**
 * Envelope encryption at rest: key ring → data key per owner, stored wrapped → one derived key per value.
 *
 * Table, column, subject, name and owner of a value are authenticated (AEAD associated data): a row copied to another
 * tenant, subject or name does not decrypt.
 *
 * @param processId of this process among those that announce their keys (`KeyRingWatch`)
 */
export function createSecretStore(ring: KeyRing, processId?: string): SecretStore {
  const keys = new DataKeys(ring, processId)
  /** By associated data and ciphertext, which decrypt to nothing else: what is stored anew, or elsewhere, misses. */
  const plaintexts = new LRUCache<string, string>({ max: PLAINTEXTS_CACHED_MAX })

  async function decryptOne(tx: Db, ref: SecretRef, secret: EncryptedSecret): Promise<string> {
    const { name, dataKeyId, ciphertext } = secret
    const aad = secretAad(ref, name)
    const cacheKey = `${aad}|${Buffer.from(ciphertext.buffer, ciphertext.byteOffset, ciphertext.byteLength).toString('latin1')}`
    const cached = plaintexts.get(cacheKey)
    if (cached !== undefined) return cached
    const key = await keys.get(tx, ref.ownerId, dataKeyId)
    const text = asUnreadable(() => decrypt(key, aad, ciphertext)).toString('utf8')
    plaintexts.set(cacheKey, text)
    return text
  }

  async function decryptAll(tx: Db, ref: SecretRef, secrets: readonly EncryptedSecret[]) {
    const values: Record<string, string> = {}
    for (const secret of secrets) values[secret.name] = await decryptOne(tx, ref, secret)
    return values
  }

  return {
    decryptAll,
    sealer: createSealer(() => ring.deriveKeys(CLIENT_VALUES)),
    createNextKey: (tx, ownerId) => keys.create(tx, ownerId),
    async put(tx, ref, values) {
      const entries = Object.entries(values)
      if (entries.length === 0) return
      const { id, key } = await keys.current(tx, ref.ownerId)
      for (const [name, text] of entries) {
        const ciphertext = encrypt(key, secretAad(ref, name), text)
        await upsertSecret(tx, ref, { name, dataKeyId: id, ciphertext })
      }
    },
    get: async (tx, ref) => await decryptAll(tx, ref, await listSecrets(tx, ref)),
    remove: deleteSecrets,
    destroyKeys: deleteSecretsAndKeys,
    async encryptFor(tx, ownerId, aad, bytes) {
      const { id, key } = await keys.current(tx, ownerId)
      return encryptUnder(id, key, ownedAad(aad, ownerId), bytes)
    },
    async encryptAllFor(tx, ownerId, values) {
      const { id, key } = await keys.current(tx, ownerId)
      return values.map(({ aad, bytes }) => encryptUnder(id, key, ownedAad(aad, ownerId), bytes))
    },
    async decryptFor(tx, ownerId, aad, encrypted) {
      const key = await keys.get(tx, ownerId, dataKeyIdOf(encrypted))
      return asUnreadable(() => decrypt(key, ownedAad(aad, ownerId), encrypted.subarray(UUID_BYTES)))
    },
    sealedSecrets: {
      name: 'secret.sealed',
      count: countSealedSecrets,
      countUnder: (tx, { dataKeyId }) => countSecretsUnder(tx, dataKeyId),
      async reseal({ pool }, key, onPage) {
        for (let after: PlacedSecret | undefined; ; ) {
          const page = await listSecretsUnder(pool, key, after, RESEAL_PAGE)
          for (const secret of page) await keys.resealSecret(pool, secret)
          if (page.length < RESEAL_PAGE) return
          after = page.at(-1)
          await onPage()
        }
      },
    },
  }
}

/** Data keys of owners, unwrapped and cached. */
class DataKeys {
  readonly #ring: KeyRing
  readonly #processId: string | undefined
  readonly #unwrapped = new LRUCache<string, Uint8Array>({ max: DATA_KEYS_CACHED_MAX })

  constructor(ring: KeyRing, processId: string | undefined) {
    this.#ring = ring
    this.#processId = processId
  }

  /** The key for new values, made when there is none. Read every time: a key of a transaction that rolls back never existed. */
  async current(tx: Db, ownerId: string): Promise<{ readonly id: string; readonly key: Uint8Array }> {
    const record = (await findCurrentDataKey(tx, ownerId)) ?? (await this.#createFirst(tx, ownerId))
    return { id: record.id, key: this.#unwrap(ownerId, record) }
  }

  /** @throws Failure SECRET_UNREADABLE */
  async get(tx: Db, ownerId: string, id: string): Promise<Uint8Array> {
    const cached = this.#unwrapped.get(id)
    if (cached !== undefined) return cached
    const record = await findDataKey(tx, ownerId, id)
    if (record === undefined) throw secretUnreadable(new Error(`no data key ${id} of ${ownerId}`))
    return this.#unwrap(ownerId, record)
  }

  /**
   * Stores a new current key, unless the owner has one. It is wrapped under the first key encryption key that every live process
   * has. With one key there is no choice to make.
   */
  async create(tx: Db, ownerId: string): Promise<void> {
    const id = newId()
    if (this.#ring.ids.length > 1) this.#ring.chooseWriter(await readOthersUnderLock(tx, this.#processId))
    await insertDataKey(tx, ownerId, { id, ...this.#ring.createDataKey(ownerId, id) })
  }

  async #createFirst(tx: Db, ownerId: string): Promise<DataKeyRecord> {
    await this.create(tx, ownerId)
    const stored = await findCurrentDataKey(tx, ownerId)
    if (stored === undefined) throw new Error(`no data key for ${ownerId} right after it was made`)
    return stored
  }

  /** Encrypts a secret with the current key of its owner, unless it changes meanwhile or cannot be read. */
  async resealSecret(tx: Db, secret: PlacedSecret): Promise<void> {
    const aad = secretAad(secret, secret.name)
    const text = await this.get(tx, secret.ownerId, secret.dataKeyId)
      .then((key) => asUnreadable(() => decrypt(key, aad, secret.ciphertext)))
      .catch(undefinedIfUnreadable)
    if (text === undefined) return
    const { id, key } = await this.current(tx, secret.ownerId)
    await replaceSealedSecret(tx, secret, { dataKeyId: id, ciphertext: encrypt(key, aad, text) })
  }

  #unwrap(ownerId: string, record: DataKeyRecord): Uint8Array {
    const cached = this.#unwrapped.get(record.id)
    const key = cached ?? asUnreadable(() => this.#ring.unwrapDataKey(record, ownerId, record.id))
    this.#unwrapped.set(record.id, key)
    return key
  }
}

/**
 * Finds a key encryption key that the database was written with and the ring does not hold, or holds with other bytes.
 *
 * @returns its id; `undefined` when the ring unwraps everything
 */
export async function findUnreadableKey(tx: Db, ring: KeyRing): Promise<string | undefined> {
  const samples = await listDataKeySamples(tx)
  return samples.find((sample) => !canUnwrap(ring, sample))?.keyEncryptionKeyId
}

function canUnwrap(ring: KeyRing, sample: OwnedDataKey): boolean {
  try {
    return ring.unwrapDataKey(sample, sample.ownerId, sample.id).length > 0
  } catch {
    return false
  }
}

const UUID_BYTES = 16

/** Id of the data key of a value that `encryptFor` made. */
export function dataKeyIdOf(sealed: Uint8Array): string {
  return uuidText(sealed.subarray(0, UUID_BYTES))
}

function encryptUnder(id: string, key: Uint8Array, aad: string, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([uuidBytes(id), encrypt(key, aad, bytes)])
}

function uuidBytes(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

function uuidText(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Ids in lower case: the same row may be addressed in capitals. */
function secretAad({ ownerId, subjectType, subjectId }: SecretRef, name: string): string {
  return `secret|sealed|${subjectType}|${subjectId.toLowerCase()}|${name}|${ownerId.toLowerCase()}`
}

/** Owners may be named in capitals too. */
function ownedAad(aad: string, ownerId: string): string {
  return `${aad}|${ownerId.toLowerCase()}`
}

function asUnreadable<Result>(decryptIt: () => Result): Result {
  try {
    return decryptIt()
  } catch (cause) {
    throw secretUnreadable(cause)
  }
}

function secretUnreadable(cause: unknown): Failure {
  return new Failure(
    'SECRET_UNREADABLE',
    'a stored secret cannot be decrypted: patchbay keys check tells which key is missing',
    {
      cause,
    },
  )
}

/**
 * Values that are encrypted under data keys, of one column or of the object store. Everything that `encryptFor` makes and a
 * process stores belongs to one of these, or a rotation would leave it behind.
 */
export interface SealedValues {
  /** `table.column` */
  readonly name: string
  /** How many there are, by key encryption key. Reads all. */
  count(tx: Db): Promise<readonly SealedCount[]>
  /** How many there are under a data key. */
  countUnder(tx: Db, key: ReplacedKey): Promise<number>
  /**
   * Encrypts every value under a replaced key with the current one of its owner. Values that change meanwhile keep what was
   * written; those that cannot be read stay. It may be interrupted and repeated at any point.
   *
   * @param onPage called before each further page of values
   */
  reseal(database: Pick<Database, 'pool' | 'transaction'>, key: ReplacedKey, onPage: () => Promise<void>): Promise<void>
}

/** A data key that a newer one has replaced. */
export interface ReplacedKey {
  readonly ownerId: string
  readonly dataKeyId: string
}

/** Values that are read and written in one round. */
export const RESEAL_PAGE = 200

/** For `catch`: rethrows everything but SECRET_UNREADABLE. */
export function undefinedIfUnreadable(error: unknown): undefined {
  if (error instanceof Failure && error.reason === 'SECRET_UNREADABLE') return undefined
  throw error
}
