import { hkdfSync, randomBytes } from 'node:crypto'
import { decrypt, encrypt } from './encryption.ts'

const KEY_BYTES = 32
const ENTRY = /^([A-Za-z0-9_.-]{1,64}):([A-Za-z0-9+/_=-]+)$/

/** Key encryption keys (KEK) of the service: the first wraps new data keys, the others still unwrap old ones. */
export interface KeyRing {
  /** A new data key, wrapped under the first key. `ownerId` and `keyId` are authenticated (associated data). */
  createDataKey(ownerId: string, keyId: string): WrappedKey
  /** Unwraps a data key. @throws Error when its key encryption key is not in the ring or the row was tampered with */
  unwrapDataKey(wrapped: WrappedKey, ownerId: string, keyId: string): Uint8Array
  /** A key of 32 bytes for another purpose, derived from each key of the ring; in the order of the ring. */
  deriveKeys(purpose: string): readonly Uint8Array[]
}

/** A data key as it is stored. */
interface WrappedKey {
  readonly keyEncryptionKeyId: string
  readonly wrapped: Uint8Array
}

/**
 * Parses `PATCHBAY_ENCRYPTION_KEYS`: `id:base64[,id:base64…]`, 32 bytes each.
 *
 * @throws Error that says what is wrong and never repeats a key
 */
export function parseKeyRing(text: string): KeyRing {
  const keys = new Map<string, Uint8Array>()
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [, id, encoded] = ENTRY.exec(entry) ?? []
    if (id === undefined || encoded === undefined) throw new Error('takes id:base64[,id:base64…]')
    const key = Buffer.from(encoded, 'base64')
    if (key.length !== KEY_BYTES) throw new Error(`key ${id} has ${key.length} bytes instead of ${KEY_BYTES}`)
    if (keys.has(id)) throw new Error(`key ${id} occurs twice`)
    keys.set(id, key)
  }
  return createKeyRing(keys)
}

/** The setting for a key ring of one new random key. */
export function generateKeyRingText(id: string): string {
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`
}

function createKeyRing(keys: ReadonlyMap<string, Uint8Array>): KeyRing {
  const [first] = keys
  if (first === undefined) throw new Error('holds no key')
  const [primaryId, primary] = first
  return {
    createDataKey: (ownerId, keyId) => ({
      keyEncryptionKeyId: primaryId,
      wrapped: encrypt(primary, dataKeyAad(ownerId, keyId), randomBytes(KEY_BYTES)),
    }),
    unwrapDataKey: ({ keyEncryptionKeyId, wrapped }, ownerId, keyId) => {
      const key = keys.get(keyEncryptionKeyId)
      if (key === undefined) throw new Error(`the key encryption key ${keyEncryptionKeyId} is not configured`)
      return decrypt(key, dataKeyAad(ownerId, keyId), wrapped)
    },
    deriveKeys: (purpose) =>
      [...keys.values()].map((key) => Buffer.from(hkdfSync('sha256', key, '', `purpose|${purpose}`, KEY_BYTES))),
  }
}

function dataKeyAad(ownerId: string, keyId: string): string {
  return `data_key|wrapped_key|${keyId}|${ownerId}`
}
