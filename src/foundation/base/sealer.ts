import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { canonicalJson, type Json } from '../json/json.ts'

const FORMAT = 2
/** With the format 6 bytes, which are 8 characters of base64url: texts under one key begin with the same ones. */
const KEY_HINT_BYTES = 5
const NONCE_BYTES = 24
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const KEY_HINT_AT = 1
const NONCE_AT = KEY_HINT_AT + KEY_HINT_BYTES
const TAG_AT = NONCE_AT + NONCE_BYTES
const CIPHERTEXT_AT = TAG_AT + TAG_BYTES
const CIPHER = 'aes-256-gcm'

/** Longest sealed text that is opened; a longer one is none. */
const SEALED_LENGTH_MAX = 64 * 1024

/**
 * Seals values that a client holds between two requests: cursors, page tokens, states of lists. They are encrypted and
 * authenticated (AEAD), so that a client can neither read nor change them, nor use them elsewhere.
 */
export interface Sealer {
  /**
   * The content as one opaque text of `A-Z a-z 0-9 - _`.
   *
   * @param purpose which kind of value it is
   * @param binding what it is valid for: the list, its arguments, who holds it. It is authenticated and no part of the text
   */
  seal(purpose: string, binding: Json, content: string): string
  /** The content of a text that `seal` made for the same purpose and binding; `undefined` for any other text. */
  open(purpose: string, binding: Json, text: string): string | undefined
}

/**
 * Creates a sealer: AES-256-GCM under a key that HMAC-SHA256 derives for each text from a random nonce, so that no number of
 * texts uses up the nonces of one key. It costs microseconds and reads no database.
 *
 * @param keys of 32 bytes each, or where they are read for each text; the first seals, all open. Default: a random one, for
 * what the same process opens again
 */
export function createSealer(
  keys: readonly Uint8Array[] | (() => readonly Uint8Array[]) = [randomBytes(KEY_BYTES)],
): Sealer {
  const currentKeys = typeof keys === 'function' ? keys : () => keys
  return {
    seal(purpose, binding, content) {
      const [current] = currentKeys()
      if (current === undefined) throw new Error('a sealer needs a key')
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, keyOf(current, nonce), nonce.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      })
      cipher.setAAD(aadOf(purpose, binding))
      const ciphertext = Buffer.concat([cipher.update(content, 'utf8'), cipher.final()])
      return Buffer.concat([headOf(current), nonce, cipher.getAuthTag(), ciphertext]).toString('base64url')
    },
    open(purpose, binding, text) {
      if (text.length > SEALED_LENGTH_MAX) return undefined
      const bytes = Buffer.from(text, 'base64url')
      // Of several texts with the same bytes, the one that was made.
      if (bytes.length < CIPHERTEXT_AT || bytes[0] !== FORMAT || bytes.toString('base64url') !== text) return undefined
      const aad = aadOf(purpose, binding)
      const key = currentKeys().find((each) => headOf(each).equals(bytes.subarray(0, NONCE_AT)))
      return key === undefined ? undefined : decipher(key, aad, bytes)
    },
  }
}

/** How every text begins that is sealed under a key: where such texts are stored, those under a key can be counted. */
export function sealedPrefix(key: Uint8Array): string {
  return headOf(key).toString('base64url')
}

function headOf(key: Uint8Array): Buffer {
  const hint = createHmac('sha256', key).update('hint').digest().subarray(0, KEY_HINT_BYTES)
  return Buffer.concat([Buffer.of(FORMAT), hint])
}

function decipher(key: Uint8Array, aad: Buffer, bytes: Buffer): string | undefined {
  const nonce = bytes.subarray(NONCE_AT, TAG_AT)
  const cipher = createDecipheriv(CIPHER, keyOf(key, nonce), nonce.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
  cipher.setAAD(aad)
  cipher.setAuthTag(bytes.subarray(TAG_AT, CIPHERTEXT_AT))
  try {
    return Buffer.concat([cipher.update(bytes.subarray(CIPHERTEXT_AT)), cipher.final()]).toString()
  } catch {
    return undefined
  }
}

function keyOf(key: Uint8Array, nonce: Uint8Array): Buffer {
  return createHmac('sha256', key).update(nonce).digest()
}

function aadOf(purpose: string, binding: Json): Buffer {
  return Buffer.from(`${purpose}\n${canonicalJson(binding)}`)
}
