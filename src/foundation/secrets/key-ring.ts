import { hkdfSync, randomBytes } from 'node:crypto'
import { decrypt, encrypt } from './encryption.ts'

const KEY_BYTES = 32
const FINGERPRINT_BYTES = 8
const ENTRY = /^([A-Za-z0-9_.-]{1,64}):([A-Za-z0-9+/_=-]+)$/

/**
 * Key encryption keys (KEK) of the service. One wraps new data keys, all unwrap: the first that every live process has, see
 * `key-ring-watch.ts`. They may be replaced while the process runs.
 */
export interface KeyRing {
  /** Ids, in the order of the settings. */
  readonly ids: readonly string[]
  /** `id:fingerprint` of each key, in the same order: two processes have the same key when these are equal. */
  readonly names: readonly string[]
  /** Id of the key that wraps new data keys, as far as is known; see `chooseWriter`. */
  readonly writerId: string
  /** Sets `writerId` to the first key that all others have; without any such key it is the first one. */
  chooseWriter(othersNames: readonly (readonly string[])[]): string
  /** A new data key, wrapped under `writerId`. `ownerId` and `keyId` are authenticated (associated data). */
  createDataKey(ownerId: string, keyId: string): WrappedKey
  /** Unwraps a data key. @throws Error when its key encryption key is not in the ring or the row was tampered with */
  unwrapDataKey(wrapped: WrappedKey, ownerId: string, keyId: string): Uint8Array
  /** The same data key, wrapped under `writerId`. @throws Error as `unwrapDataKey` */
  rewrapDataKey(wrapped: WrappedKey, ownerId: string, keyId: string): WrappedKey
  /** A key of 32 bytes for another purpose, derived from each key of the ring; that of the writer first. */
  deriveKeys(purpose: string): readonly Uint8Array[]
  /** That of one key. @throws Error when it is not in the ring */
  deriveKey(id: string, purpose: string): Uint8Array
  /** Replaces all keys. @param text as `parseKeyRing` takes it @throws Error as that; nothing has changed then */
  replace(text: string): void
}

/** A data key as it is stored. */
interface WrappedKey {
  readonly keyEncryptionKeyId: string
  readonly wrapped: Uint8Array
}

/**
 * Parses `PATCHBAY_ENCRYPTION_KEYS`, or the content of a key file: `id:base64[,id:base64…]`, 32 bytes each; lines separate
 * as commas do.
 *
 * @throws Error that says what is wrong and never repeats a key
 */
export function parseKeyRing(text: string): KeyRing {
  return createKeyRing(parseKeys(text))
}

/** The setting for a key ring of one new random key. */
export function generateKeyRingText(id: string): string {
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`
}

/** Entries of a key ring's text, `id:base64`. */
export function keyRingEntries(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((entry) => entry !== '')
}

function parseKeys(text: string): ReadonlyMap<string, Uint8Array> {
  const keys = new Map<string, Uint8Array>()
  for (const entry of keyRingEntries(text)) {
    const [, id, encoded] = ENTRY.exec(entry) ?? []
    if (id === undefined || encoded === undefined) throw new Error('takes id:base64[,id:base64…]')
    const key = Buffer.from(encoded, 'base64')
    if (key.length !== KEY_BYTES) throw new Error(`key ${id} has ${key.length} bytes instead of ${KEY_BYTES}`)
    if (keys.has(id)) throw new Error(`key ${id} occurs twice`)
    keys.set(id, key)
  }
  if (keys.size === 0) throw new Error('takes id:base64[,id:base64…] and holds no key')
  return keys
}

function createKeyRing(initial: ReadonlyMap<string, Uint8Array>): KeyRing {
  let keys = initial
  let ids = [...keys.keys()]
  let names = namesOf(keys)
  let writerId = firstOf(ids)
  const derived = new Map<string, readonly Uint8Array[]>()

  function wrap(dataKey: Uint8Array, ownerId: string, keyId: string): WrappedKey {
    return {
      keyEncryptionKeyId: writerId,
      wrapped: encrypt(keyOf(writerId), dataKeyAad(ownerId, keyId), dataKey),
    }
  }

  function keyOf(id: string): Uint8Array {
    const key = keys.get(id)
    if (key === undefined) throw new Error(`the key encryption key ${id} is not configured`)
    return key
  }

  function unwrap({ keyEncryptionKeyId, wrapped }: WrappedKey, ownerId: string, keyId: string): Uint8Array {
    return decrypt(keyOf(keyEncryptionKeyId), dataKeyAad(ownerId, keyId), wrapped)
  }

  function deriveKey(id: string, purpose: string): Uint8Array {
    return derive(keyOf(id), `purpose|${purpose}`, KEY_BYTES)
  }

  function setWriter(id: string): void {
    if (id !== writerId) derived.clear()
    writerId = id
  }

  return {
    get ids() {
      return ids
    },
    get names() {
      return names
    },
    get writerId() {
      return writerId
    },
    chooseWriter(othersNames) {
      const shared = names.findIndex((name) => othersNames.every((other) => other.includes(name)))
      setWriter(ids[Math.max(shared, 0)] ?? writerId)
      return writerId
    },
    createDataKey: (ownerId, keyId) => wrap(randomBytes(KEY_BYTES), ownerId, keyId),
    unwrapDataKey: unwrap,
    rewrapDataKey: (wrapped, ownerId, keyId) => wrap(unwrap(wrapped, ownerId, keyId), ownerId, keyId),
    deriveKeys(purpose) {
      const known = derived.get(purpose)
      if (known !== undefined) return known
      const ordered = [writerId, ...ids.filter((id) => id !== writerId)]
      const result = ordered.map((id) => deriveKey(id, purpose))
      derived.set(purpose, result)
      return result
    },
    deriveKey,
    replace(text) {
      keys = parseKeys(text)
      ids = [...keys.keys()]
      names = namesOf(keys)
      derived.clear()
      if (!keys.has(writerId)) setWriter(firstOf(ids))
    },
  }
}

function firstOf(ids: readonly string[]): string {
  const [first] = ids
  if (first === undefined) throw new Error('holds no key')
  return first
}

/** The keys are random: a hash of one tells nothing about it. */
function namesOf(keys: ReadonlyMap<string, Uint8Array>): readonly string[] {
  return [...keys].map(([id, key]) => `${id}:${derive(key, 'fingerprint', FINGERPRINT_BYTES).toString('hex')}`)
}

function derive(key: Uint8Array, info: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', info, bytes))
}

function dataKeyAad(ownerId: string, keyId: string): string {
  return `data_key|wrapped_key|${keyId}|${ownerId}`
}
