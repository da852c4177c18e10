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
const CIPHERTEXT_AT = TAG_AT + TAG_BYTES

/**
 * Authenticated encryption (AEAD): AES-256-GCM under a key derived by HKDF from the data key and a fresh salt.
 *
 * The derivation also yields a key commitment, so that one ciphertext cannot be made to decrypt under two keys.
 *
 * Layout: format 1 · salt 32 · commitment 32 · iv 12 · tag 16 · ciphertext.
 *
 * @param aad associated data: names table, column, row and owner, so that a ciphertext that was copied to another row or
 * tenant does not decrypt
 */
export function encrypt(key: Uint8Array, aad: string, plaintext: string | Uint8Array): Uint8Array {
  const salt = randomBytes(SALT_BYTES)
  const iv = randomBytes(IV_BYTES)
  const { recordKey, commitment } = deriveKeys(key, salt, aad)
  const cipher = createCipheriv('aes-256-gcm', recordKey, iv, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(aad))
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
  return Buffer.concat([Buffer.of(FORMAT), salt, commitment, iv, cipher.getAuthTag(), ciphertext])
}

/** Decrypts what `encrypt` made. @throws Error when the key, the associated data or any bit differs */
export function decrypt(key: Uint8Array, aad: string, encrypted: Uint8Array): Buffer {
  const bytes = Buffer.from(encrypted)
  if (bytes.length < CIPHERTEXT_AT || bytes[0] !== FORMAT) throw new Error('not an encrypted value of a known format')
  const salt = bytes.subarray(SALT_AT, COMMITMENT_AT)
  const commitment = bytes.subarray(COMMITMENT_AT, IV_AT)
  const iv = bytes.subarray(IV_AT, TAG_AT)
  const tag = bytes.subarray(TAG_AT, CIPHERTEXT_AT)
  const derived = deriveKeys(key, salt, aad)
  if (!timingSafeEqual(derived.commitment, commitment))
    throw new Error('encrypted under another key or with other associated data')
  const decipher = createDecipheriv('aes-256-gcm', derived.recordKey, iv, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(aad))
  decipher.setAuthTag(tag)
  return Buffer.concat([decipher.update(bytes.subarray(CIPHERTEXT_AT)), decipher.final()])
}

function deriveKeys(key: Uint8Array, salt: Uint8Array, aad: string): { recordKey: Buffer; commitment: Buffer } {
  const derived = Buffer.from(hkdfSync('sha256', key, salt, aad, KEY_BYTES + COMMITMENT_BYTES))
  return { recordKey: derived.subarray(0, KEY_BYTES), commitment: derived.subarray(KEY_BYTES) }
}
