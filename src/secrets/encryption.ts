import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'

const FORMAT = 1
const SALT_BYTES = 32
const COMMITMENT_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const SALT_AT = 1
const COMMITMENT_AT = SALT_AT + SALT_BYTES
const IV_AT = COMMITMENT_AT + COMMITMENT_BYTES
const TAG_AT = IV_AT + IV_BYTES
const TEXT_AT = TAG_AT + TAG_BYTES

/**
 * Encrypts a text so that it opens only with the same key and in the same place.
 *
 * AES-256-GCM under a key derived by HKDF from the data key and a fresh salt; the derivation also yields a commitment,
 * so that one ciphertext cannot be made to open under two keys. `place` names table, column, row and owner and is
 * authenticated: a ciphertext moved to another row or tenant does not open.
 *
 * Layout: format 1 · salt 32 · commitment 32 · iv 12 · tag 16 · ciphertext.
 */
export function encrypt(key: Uint8Array, aad: string, text: string | Uint8Array): Uint8Array {
  const salt = randomBytes(SALT_BYTES)
  const iv = randomBytes(IV_BYTES)
  const { recordKey, commitment } = deriveKeys(key, salt, aad)
  const cipher = createCipheriv('aes-256-gcm', recordKey, iv, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(aad))
  const sealed = Buffer.concat([cipher.update(text), cipher.final()])
  return Buffer.concat([Buffer.of(FORMAT), salt, commitment, iv, cipher.getAuthTag(), sealed])
}

/** Opens what `seal` made. @throws Error when the key, the place or any bit differs */
export function decrypt(key: Uint8Array, aad: string, sealed: Uint8Array): Buffer {
  const bytes = Buffer.from(sealed)
  if (bytes.length < TEXT_AT || bytes[0] !== FORMAT) throw new Error('not a sealed value of a known format')
  const salt = bytes.subarray(SALT_AT, COMMITMENT_AT)
  const commitment = bytes.subarray(COMMITMENT_AT, IV_AT)
  const iv = bytes.subarray(IV_AT, TAG_AT)
  const tag = bytes.subarray(TAG_AT, TEXT_AT)
  const derived = deriveKeys(key, salt, aad)
  if (!timingSafeEqual(derived.commitment, commitment)) throw new Error('sealed under another key or for another place')
  const decipher = createDecipheriv('aes-256-gcm', derived.recordKey, iv, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(aad))
  decipher.setAuthTag(tag)
  return Buffer.concat([decipher.update(bytes.subarray(TEXT_AT)), decipher.final()])
}

function deriveKeys(key: Uint8Array, salt: Uint8Array, aad: string): { recordKey: Buffer; commitment: Buffer } {
  const both = Buffer.from(hkdfSync('sha256', key, salt, aad, KEY_BYTES + COMMITMENT_BYTES))
  return { recordKey: both.subarray(0, KEY_BYTES), commitment: both.subarray(KEY_BYTES) }
}
